"""Does the template keep the rules that no linter knows?"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from breakwater.domain.obligations import lane_queue
from breakwater.domain.states import Lane
from breakwater.entry.queue import MAX_RECEIVES
from breakwater.usecases.intake import KEEP_DAYS
from tests.support.template import ROOT, TEMPLATE, allowed, functions, resources, role_of, statements, target, template

FUNCTIONS = sorted(functions())
NUDGE_QUEUES = ["InteractiveQueue", "BackgroundQueue", "CompletionQueue", "EffectsQueue"]
CONSUMERS = {
    "WorkerInteractiveFunction": "InteractiveQueue",
    "WorkerBackgroundFunction": "BackgroundQueue",
    "CompletionFunction": "CompletionQueue",
    "EffectsFunction": "EffectsQueue",
}
GATEWAY_SECONDS = 30
AUDIT = "OperatorAuditLogs"
# Which right goes with which environment variable: a function is told only of what it may use.
RIGHTS = {
    "JOBS_TABLE": ("dynamodb:", "JobsTable"),
    "CONTROL_TABLE": ("dynamodb:", "ControlTable"),
    "PAYLOAD_BUCKET": ("s3:", "PayloadBucket"),
    "INTERACTIVE_QUEUE_URL": ("sqs:SendMessage", "InteractiveQueue"),
    "BACKGROUND_QUEUE_URL": ("sqs:SendMessage", "BackgroundQueue"),
    "COMPLETION_QUEUE_URL": ("sqs:SendMessage", "CompletionQueue"),
    "EFFECTS_QUEUE_URL": ("sqs:SendMessage", "EffectsQueue"),
    "DEAD_LETTERS_QUEUE_URL": ("sqs:SendMessage", "DeadLettersQueue"),
    "INTERACTIVE_DLQ_URL": ("sqs:ReceiveMessage", "InteractiveDlq"),
    "BACKGROUND_DLQ_URL": ("sqs:ReceiveMessage", "BackgroundDlq"),
    "COMPLETION_DLQ_URL": ("sqs:ReceiveMessage", "CompletionDlq"),
    "EFFECTS_DLQ_URL": ("sqs:ReceiveMessage", "EffectsDlq"),
    "PROVIDER_KEYS_SECRET": ("secretsmanager:", "ProviderKeysSecret"),
    "WEBHOOK_SECRETS_SECRET": ("secretsmanager:", "WebhookSecretsSecret"),
    "CRON_SECRETS_SECRET": ("secretsmanager:", "CronSecretsSecret"),
    "STREAM_TOKENS_SECRET": ("secretsmanager:", "StreamTokensSecret"),
    "NOTIFY_SECRETS_SECRET": ("secretsmanager:", "NotifySecretsSecret"),
    "EVENT_BUS_NAME": ("events:", "EventBus"),
    "AUDIT_LOG_GROUP": ("logs:PutLogEvents", "OperatorAuditLogs"),
}
NO_RIGHT_NEEDED = {
    "STAGE",
    "CODE_VERSION",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_SERVICE_NAME",
    "PROVIDER_BASE_URLS",
    "RECEIVE_WEBHOOKS",
    "CALLBACK_LOOPBACK_HOSTS",
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_logs_to_a_group_of_its_own_with_a_retention(function):
    """The group is a resource, bears the function's name, and keeps logs as long as the parameter says."""
    group = target(functions()[function]["LoggingConfig"]["LogGroup"])

    properties = resources("AWS::Logs::LogGroup")[group]

    assert properties["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    name = functions()[function]["FunctionName"]["Fn::Sub"]
    assert properties["LogGroupName"] == {"Fn::Sub": f"/aws/lambda/{name}"}
    assert [one for one in FUNCTIONS if target(functions()[one]["LoggingConfig"]["LogGroup"]) == group] == [function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_a_role_that_no_other_has(function):
    """One role, one function; it may write its own log and no other."""
    role = role_of(function)

    assert [one for one in FUNCTIONS if role_of(one) == role] == [function]
    logs = {resource for action, resource in allowed(role) if action.startswith("logs:")}
    assert logs - {AUDIT} == {target(functions()[function]["LoggingConfig"]["LogGroup"])}


@pytest.mark.parametrize("role", sorted(resources("AWS::IAM::Role")))
def test_a_role_names_single_actions_on_single_resources(role):
    """No star in an action; in a resource only for the objects of one bucket."""
    for actions, named in statements(role):
        assert all(re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action) for action in actions)
        for resource in named:
            text = resource.get("Fn::Sub", "")
            assert "*" not in text or text == "${PayloadBucket.Arn}/*"
            assert target(resource) in template()["Resources"]


def test_the_audit_is_appended_to_by_the_operator_and_altered_by_nobody():
    """Operators' actions stay where no function can change, shorten or delete them."""
    rights = {(one, action) for one in FUNCTIONS for action, on in allowed(role_of(one)) if on == AUDIT}

    assert rights == {("OperatorFunction", "logs:CreateLogStream"), ("OperatorFunction", "logs:PutLogEvents")}
    resource = template()["Resources"][AUDIT]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert resource["Properties"]["RetentionInDays"] >= 365


def test_every_alarm_tells_somebody_and_has_a_page_that_starts_with_a_command():
    """Whoever is paged finds what to type on the first line, under the alarm's own name."""
    for one in resources("AWS::CloudWatch::Alarm").values():
        page = ROOT / "docs" / "runbooks" / f"{one['AlarmName']['Fn::Sub'].removeprefix('breakwater-${Stage}-')}.md"

        assert one["AlarmActions"]["Fn::If"][0] == "HasAlarmEmail"
        assert one["TreatMissingData"] in {"notBreaching", "breaching"}
        lines = page.read_text().splitlines()
        assert lines[2] == "```sh", page
        assert lines[3].startswith(("breakwater ", "aws ")), page


def test_the_dashboard_draws_only_what_is_measured():
    """A widget of a metric that nobody writes would stay empty and look healthy."""
    body = resources("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]["Fn::Sub"]
    telemetry = (ROOT / "shared" / "breakwater" / "telemetry.py").read_text()

    drawn = {
        metric[1]
        for widget in json.loads(body)["widgets"]
        for metric in widget["properties"]["metrics"]
        if len(metric) > 1
    }
    alarmed = {
        one["MetricName"] for one in resources("AWS::CloudWatch::Alarm").values() if "Fn::Sub" in one["Namespace"]
    }

    assert all(f'"{name}"' in telemetry for name in drawn | alarmed)


def test_only_the_operator_writes_the_control_table():
    """A worker that is taken over can't make itself an operator."""
    writes = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"}

    writers = [one for one in FUNCTIONS if any((write, "ControlTable") in allowed(role_of(one)) for write in writes)]

    assert writers == ["OperatorFunction"]


def test_a_batch_of_statements_has_the_rights_of_its_statements():
    """The emulator asks for the request's name, AWS for what each statement does: nothing local would miss one."""
    batches = {one for one in FUNCTIONS if ("dynamodb:DeleteItem", "JobsTable") in allowed(role_of(one))}
    takes = {"RunFunction", "WorkerInteractiveFunction", "WorkerBackgroundFunction"}  # slots
    keeps = {"EffectsFunction", "CompletionFunction"}  # records of effects; a result and the trace of its webhook

    def may(action: str) -> set[str]:
        return {one for one in FUNCTIONS if (f"dynamodb:{action}", "JobsTable") in allowed(role_of(one))}

    assert may("PartiQLDelete") == batches
    assert may("PartiQLInsert") == takes | keeps


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_told_of_exactly_what_it_may_use(function):
    """Every variable that names a resource comes with a right to it, and every right with a variable."""
    variables, rights = set(functions()[function]["Environment"]), allowed(role_of(function))

    told = variables - NO_RIGHT_NEEDED

    def may(prefix: str, resource: str) -> bool:
        return any(action.startswith(prefix) and on == resource for action, on in rights)

    assert told <= set(RIGHTS)
    assert {name for name, (prefix, resource) in RIGHTS.items() if may(prefix, resource)} == told


@pytest.mark.parametrize(("function", "queue"), CONSUMERS.items())
def test_a_queue_waits_six_timeouts_before_it_delivers_again(function, queue):
    """So a message never comes again while its function may still work on it."""
    assert resources("AWS::SQS::Queue")[queue]["VisibilityTimeout"] >= 6 * functions()[function]["Timeout"]


@pytest.mark.parametrize(("function", "queue"), CONSUMERS.items())
def test_a_consumer_takes_one_nudge_at_a_time_within_its_own_concurrency(function, queue):
    """One nudge a call, partial answers, a limit a lane; the loop stop is off, since our nudges lead back."""
    event = functions()[function]["Events"]["Nudge"]["Properties"]

    assert target(event["Queue"]) == queue
    assert event["BatchSize"] == 1
    assert event["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert event["ScalingConfig"]["MaximumConcurrency"] >= 2
    assert functions()[function]["RecursiveLoop"] == "Allow"


def test_a_full_background_takes_nothing_from_people():
    """Lanes have a queue, a function and a concurrency of their own; a request that waits stands in no queue at all."""
    consumers = {queue.removesuffix("Queue").lower(): name for name, queue in CONSUMERS.items()}
    people = {consumers[lane_queue(one).value] for one in (Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY)}
    background = {consumers[lane_queue(Lane.BACKGROUND_RETRY).value]}
    most = {
        name: functions()[name]["Events"]["Nudge"]["Properties"]["ScalingConfig"]["MaximumConcurrency"]
        for name in CONSUMERS
    }

    assert people == {"WorkerInteractiveFunction"}
    assert background == {"WorkerBackgroundFunction"}
    assert most["WorkerBackgroundFunction"] < most["WorkerInteractiveFunction"]
    assert all("Events" not in functions()[name] for name in ("AdmissionFunction", "RunFunction"))


@pytest.mark.parametrize(
    ("function", "indexes"),
    [
        ("AdmissionFunction", {"ready", "turns", "standing"}),
        ("RunFunction", {"ready", "turns", "standing"}),
        ("SchedulerFunction", {"standing"}),
        ("CronFunction", {"standing"}),
        *[(name, {"ready", "turns"}) for name in CONSUMERS],
    ],
)
def test_who_admits_may_count_and_who_frees_capacity_may_see_whose_turn_it_is(function, indexes):
    """A right that is missing shows only once somebody sets a limit, or waits."""
    named = [str(one) for actions, on in statements(role_of(function)) if "dynamodb:Query" in actions for one in on]

    assert indexes <= set(re.findall(r"/index/([a-z]+)", " ".join(named)))


def test_no_other_function_reads_a_nudge_queue():
    """Lanes stay apart: one queue, one reader."""
    readers = {name: one["Events"] for name, one in functions().items() if "Events" in one}

    assert set(readers) == set(CONSUMERS)
    assert all(list(events) == ["Nudge"] for events in readers.values())


@pytest.mark.parametrize("queue", NUDGE_QUEUES)
def test_what_crashes_its_handler_five_times_goes_to_a_queue_with_an_alarm(queue):
    """Every nudge queue has a dead-letter path, kept 14 days and watched."""
    redrive = resources("AWS::SQS::Queue")[queue]["RedrivePolicy"]

    assert redrive["maxReceiveCount"] == MAX_RECEIVES
    assert_watched(target(redrive["deadLetterTargetArn"]))


def test_dead_letters_are_kept_two_weeks_and_watched():
    """The queue of dead jobs has no reader, so nothing but the alarm tells of it."""
    assert_watched("DeadLettersQueue")


def assert_watched(queue: str) -> None:
    """14 days of retention, and an alarm on the first message that tells somebody."""
    assert resources("AWS::SQS::Queue")[queue]["MessageRetentionPeriod"] == 14 * 24 * 3600
    alarms = [
        one
        for one in resources("AWS::CloudWatch::Alarm").values()
        if one.get("Dimensions") == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [queue, "QueueName"]}}]
    ]
    assert [(one["MetricName"], one["Threshold"]) for one in alarms] == [("ApproximateNumberOfMessagesVisible", 0)]
    assert alarms[0]["AlarmActions"]["Fn::If"][0] == "HasAlarmEmail"


@pytest.mark.parametrize("queue", sorted(resources("AWS::SQS::Queue")))
def test_a_queue_is_encrypted(queue):
    """Nothing of value is in a message; it is encrypted all the same."""
    assert resources("AWS::SQS::Queue")[queue]["SqsManagedSseEnabled"] is True


@pytest.mark.parametrize("table", sorted(resources("AWS::DynamoDB::Table")))
def test_a_table_outlives_its_stack(table):
    """Kept, recoverable, protected in production, paid by use, cleaned by `ttl`; sparse indexes hold keys only."""
    resource = template()["Resources"][table]
    properties = resource["Properties"]

    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["DeletionProtectionEnabled"] == {"Fn::If": ["IsProduction", True, False]}
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    indexes = properties.get("GlobalSecondaryIndexes", [])
    assert all(one["Projection"] == {"ProjectionType": "KEYS_ONLY"} for one in indexes)


def test_the_bucket_is_private_encrypted_and_outlives_its_stack():
    """Bodies of jobs are in it."""
    resource = template()["Resources"]["PayloadBucket"]

    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert set(resource["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    assert resource["Properties"]["BucketEncryption"]


def test_what_a_delivery_carried_goes_with_its_record():
    """Its object outlives the record by no more than a day, and never goes before it."""
    rules = template()["Resources"]["PayloadBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]

    days = {one["Prefix"]: one["ExpirationInDays"] for one in rules if "ExpirationInDays" in one}

    assert days["deliveries/"] == KEEP_DAYS + 1


@pytest.mark.parametrize("name", ["Sweep", "Tick"])
def test_what_runs_each_minute_is_not_retried_and_ends_before_the_next(name):
    """The next minute is the retry; two at once would do the same work twice."""
    schedule = resources("AWS::Scheduler::Schedule")[f"{name}Schedule"]

    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 0
    assert resources("AWS::Lambda::EventInvokeConfig")[f"{name}Invocations"]["MaximumRetryAttempts"] == 0
    assert functions()[target(schedule["Target"]["Arn"])]["Timeout"] < 60


@pytest.mark.parametrize("route", sorted(resources("AWS::ApiGatewayV2::Route")))
def test_a_route_names_its_method_and_asks_for_a_key(route):
    """`ANY` would swallow preflight requests; without a key come signed webhooks, CRON_SECRET and stream tokens."""
    properties = resources("AWS::ApiGatewayV2::Route")[route]
    method, path = properties["RouteKey"].split(" ")

    assert method in {"GET", "POST"}
    signed = path.startswith(("/v1/webhooks/", "/v1/cron/")) or path == "/v1/jobs/{job_id}/stream"
    assert properties["AuthorizationType"] == ("NONE" if signed else "CUSTOM")
    assert ("AuthorizerId" in properties) != signed


@pytest.mark.parametrize("integration", sorted(resources("AWS::ApiGatewayV2::Integration")))
def test_the_gateway_may_call_what_it_routes_to_and_waits_long_enough(integration):
    """Each integrated function has a permission and ends before the gateway gives up."""
    function = target(resources("AWS::ApiGatewayV2::Integration")[integration]["IntegrationUri"])

    permitted = [target(one["FunctionName"]) for one in resources("AWS::Lambda::Permission").values()]

    assert function in permitted
    assert functions()[function]["Timeout"] < GATEWAY_SECONDS


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_only_its_handler(function):
    """No requirements of its own, nothing to build: everything else comes from the layers."""
    resource = template()["Resources"][function]
    folder = ROOT / resource["Properties"]["CodeUri"]

    assert resource["Metadata"] == {"SkipBuild": True}
    assert [one.name for one in folder.iterdir() if one.name != "__pycache__"] == ["app.py"]


def test_runtime_and_architecture_are_literals_and_the_same_everywhere():
    """A parameter would be ignored by SAM's cache and ship the wrong binaries."""
    function = template()["Globals"]["Function"]
    layers = resources("AWS::Serverless::LayerVersion")

    assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])
    for one in layers.values():
        assert (one["CompatibleRuntimes"], one["CompatibleArchitectures"]) == (["python3.13"], ["arm64"])
        makefile = (ROOT / one["ContentUri"] / "Makefile").read_text()
        assert "--python 3.13 --platform aarch64-manylinux_2_28" in makefile
    assert not re.search(r"Runtime: [^p]|Architectures: [^\[]", TEMPLATE.read_text())


def test_a_local_build_has_folders_of_its_own():
    """What is built for this machine never lies where a deploy to AWS looks."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())

    assert {"default", "staging", "prod", "local"} <= set(config)
    local = config["local"]["build"]["parameters"]
    folders = [Path(local["build_dir"]), Path(local["cache_dir"]), Path(local["template_file"]).parent]
    assert all(folder.is_relative_to(".local/build") for folder in folders)
    for stage in ("default", "staging", "prod"):
        assert not {"build_dir", "cache_dir", "template_file"} & set(config[stage]["build"]["parameters"])
        assert "template_file" not in config[stage]["deploy"]["parameters"]
