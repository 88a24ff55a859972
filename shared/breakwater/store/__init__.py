"""DynamoDB, S3 and SQS behind the ports."""
