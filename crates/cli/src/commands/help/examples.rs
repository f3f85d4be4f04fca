//! Lists the examples of every command, and the page of the manual with details.

pub(super) struct Examples {
    /// The name of the command with its parents; empty for the program itself.
    command: &'static str,
    /// Complete command lines. `\` and a line end continue a command on the next line.
    pub(super) lines: &'static [&'static str],
    /// The path of the manual's page in the repository.
    pub(super) page: &'static str,
}

pub(super) fn of(command: &str) -> Option<&'static Examples> {
    EXAMPLES.iter().find(|examples| examples.command == command)
}

const fn of_command(
    command: &'static str,
    page: &'static str,
    lines: &'static [&'static str],
) -> Examples {
    Examples { command, lines, page }
}

const EXAMPLES: &[Examples] = &[
    of_command(
        "",
        "docs/README.md",
        &[
            "lastmile demo",
            "lastmile dev -f subscriptions.yaml",
            "lastmile check subscriptions.yaml",
            "lastmile deadletters list --stack orders-prod --since 2h",
        ],
    ),
    of_command(
        "dev",
        "docs/guides/local.md",
        &[
            "lastmile dev -f subscriptions.yaml",
            "lastmile dev -f subscriptions.yaml --env BILLING_TOKEN --port 0",
            "lastmile dev --default-topic shop/orders --key env:PUBLISH_KEY",
            "lastmile dev --listen 0.0.0.0 --host lastmile --key env:PUBLISH_KEY",
        ],
    ),
    of_command(
        "demo",
        "docs/guides/local.md",
        &["lastmile demo", "lastmile demo --data /tmp/demo"],
    ),
    of_command(
        "check",
        "docs/guides/subscribe.md",
        &[
            "lastmile check subscriptions.yaml",
            "lastmile check -f subscriptions/ --stack orders-prod",
            "lastmile check --to s3://config-bucket/subscriptions/ --output json",
        ],
    ),
    of_command(
        "convert",
        "docs/reference/dialects.md",
        &[
            "lastmile convert triggers.yaml",
            "lastmile convert event-subscriptions.json --output json",
            "lastmile convert examples/eventbridge/ > subscriptions.yaml",
            "lastmile convert subscriptions/ --objects topics/ --owner team-a",
        ],
    ),
    of_command(
        "explain",
        "docs/guides/subscribe.md",
        &[
            "lastmile explain subscriptions.yaml --outcome 503",
            "lastmile explain subscriptions/ shop/orders/billing --origins",
            "lastmile explain shop/orders/billing --stack orders-prod",
            "lastmile explain subscriptions.yaml --event event.json",
        ],
    ),
    of_command(
        "apply",
        "docs/guides/subscribe.md",
        &[
            "lastmile apply -f subscriptions.yaml --stack orders-prod",
            "lastmile apply -f billing/ --to s3://config-bucket/subscriptions/ \\\n      --owner billing --prune --yes",
        ],
    ),
    of_command(
        "rollback",
        "docs/guides/subscribe.md",
        &[
            "lastmile rollback shop/orders --stack orders-prod",
            "lastmile rollback shop --to s3://config-bucket/subscriptions/ \\\n      --owner billing --at 2026-11-20T07:00:00Z --yes",
        ],
    ),
    of_command(
        "subscriptions",
        "docs/reference/storage.md",
        &[
            "lastmile subscriptions list shop/orders --stack orders-prod",
            "lastmile subscriptions get shop/orders/billing --stack orders-prod",
            "lastmile subscriptions export --stack orders-prod > subscriptions.yaml",
        ],
    ),
    of_command(
        "subscriptions list",
        "docs/reference/storage.md",
        &[
            "lastmile subscriptions list shop --stack orders-prod",
            "lastmile subscriptions list shop/orders --to s3://config-bucket/subscriptions/",
            "lastmile subscriptions list shop/orders --who-gets event.json \\\n      --stack orders-prod",
        ],
    ),
    of_command(
        "subscriptions get",
        "docs/reference/storage.md",
        &[
            "lastmile subscriptions get shop/orders/billing --stack orders-prod",
            "lastmile subscriptions get shop/orders/billing \\\n      --to s3://config-bucket/subscriptions/",
        ],
    ),
    of_command(
        "subscriptions delete",
        "docs/reference/storage.md",
        &[
            "lastmile subscriptions delete shop/orders/billing --stack orders-prod",
            "lastmile subscriptions delete shop/orders/billing --owner billing --yes \\\n      --to s3://config-bucket/subscriptions/",
        ],
    ),
    of_command(
        "subscriptions history",
        "docs/reference/storage.md",
        &[
            "lastmile subscriptions history shop/orders --stack orders-prod",
            "lastmile subscriptions history shop/orders --output json \\\n      --to s3://config-bucket/subscriptions/",
        ],
    ),
    of_command(
        "subscriptions export",
        "docs/reference/storage.md",
        &[
            "lastmile subscriptions export --stack orders-prod > subscriptions.yaml",
            "lastmile subscriptions export --owner billing \\\n      --to s3://config-bucket/subscriptions/",
        ],
    ),
    of_command(
        "try",
        "docs/guides/subscribe.md",
        &[
            "lastmile try -f subscriptions.yaml shop/orders/billing",
            "lastmile try -f subscriptions.yaml shop/orders/billing --event order.json \\\n      --env BILLING_TOKEN",
            "lastmile try -f subscriptions.yaml shop/orders/billing --print",
            "lastmile try --consent --stack orders-prod shop/orders/billing",
            "lastmile try --consent -f subscriptions.yaml --listen 127.0.0.1:8088",
        ],
    ),
    of_command(
        "doctor",
        "docs/operate/doctor.md",
        &[
            "lastmile doctor --stack orders-prod",
            "lastmile doctor --stack orders-prod --try shop/orders/billing",
            "lastmile doctor --stack orders-prod --output json",
        ],
    ),
    of_command(
        "deadletters",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters why --stack orders-prod --since 1d",
            "lastmile deadletters list --subscription shop/orders/billing --status 5xx",
            "lastmile deadletters replay --stack orders-prod --since 2h --dry-run",
        ],
    ),
    of_command(
        "deadletters list",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters list",
            "lastmile deadletters list --stack orders-prod --since 2h --status 5xx",
            "lastmile deadletters list --container s3://dead-letters --output ndjson",
            "lastmile deadletters list --topic shop/orders --follow --every 10s",
            "lastmile deadletters list --stack orders-prod --full > letters.ndjson",
        ],
    ),
    of_command(
        "deadletters show",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters show 4f1c02aa",
            "lastmile deadletters show 4f1c02aa --stack orders-prod --output json",
        ],
    ),
    of_command(
        "deadletters why",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters why --stack orders-prod --since 1d",
            "lastmile deadletters why --destination 'https://billing.example.com/*'",
            "lastmile deadletters why --topic shop/orders --by subscription,hour",
        ],
    ),
    of_command(
        "deadletters replay",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters replay --stack orders-prod --since 2h --dry-run",
            "lastmile deadletters replay 4f1c02aa --stack orders-prod --yes",
            "lastmile deadletters replay --stack orders-prod --status 5xx --rate 50/s --yes",
            "lastmile deadletters replay --cause 3f9a12c4 --wait 5m --yes",
        ],
    ),
    of_command(
        "deadletters jobs",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters jobs",
            "lastmile deadletters jobs after-repair --stack orders-prod",
            "lastmile deadletters jobs --stack orders-prod --output json",
        ],
    ),
    of_command(
        "deadletters dismiss",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters dismiss 4f1c02aa --note refunded",
            "lastmile deadletters dismiss --cause 3f9a12c4 --note \"test orders\"",
        ],
    ),
    of_command(
        "deadletters undismiss",
        "docs/guides/replay.md",
        &["lastmile deadletters undismiss 4f1c02aa --stack orders-prod"],
    ),
    of_command(
        "deadletters rescue",
        "docs/operate/rescue.md",
        &[
            "lastmile deadletters rescue --stack orders-prod",
            "lastmile deadletters rescue --container s3://dead-letters \\\n      --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/last-resort",
        ],
    ),
    of_command(
        "deadletters purge",
        "docs/guides/replay.md",
        &[
            "lastmile deadletters purge --stack orders-prod --until 2026-10-01 --dry-run",
            "lastmile deadletters purge --subscription shop/orders/billing --yes",
            "lastmile deadletters purge --all",
        ],
    ),
    of_command(
        "console",
        "docs/guides/replay.md",
        &["lastmile console", "lastmile console --stack orders-prod --port 0"],
    ),
    of_command(
        "trace",
        "docs/guides/why-not.md",
        &[
            "lastmile trace order-1",
            "lastmile trace 6c93bfa1-6020-5b2f-9966-f474a78b25a5 --stack orders-prod",
            "lastmile trace --search order- --since 2d --stack orders-prod --output json",
        ],
    ),
    of_command(
        "destinations",
        "docs/operate/destination-down.md",
        &[
            "lastmile destinations list --stack orders-prod",
            "lastmile destinations show shop/orders/billing --stack orders-prod",
            "lastmile destinations enable shop/orders/billing --stack orders-prod",
        ],
    ),
    of_command(
        "destinations list",
        "docs/operate/destination-down.md",
        &[
            "lastmile destinations list --stack orders-prod",
            "lastmile destinations list --to s3://config-bucket/subscriptions/ \\\n      --table orders-prod-Table --all --output json",
        ],
    ),
    of_command(
        "destinations show",
        "docs/operate/destination-down.md",
        &[
            "lastmile destinations show shop/orders/billing --stack orders-prod",
            "lastmile destinations show https://billing.example.com/events",
        ],
    ),
    of_command(
        "destinations disable",
        "docs/operate/destination-down.md",
        &[
            "lastmile destinations disable shop/orders/billing --stack orders-prod",
            "lastmile destinations disable https://billing.example.com/events",
        ],
    ),
    of_command(
        "destinations enable",
        "docs/operate/destination-down.md",
        &[
            "lastmile destinations enable shop/orders/billing --stack orders-prod",
            "lastmile destinations enable https://billing.example.com/events",
            "lastmile destinations enable shop/orders/billing --once",
        ],
    ),
    of_command(
        "cost",
        "docs/reference/scale.md",
        &[
            "lastmile cost --events 1e6",
            "lastmile cost --events 1e9 --per month --success 0.99 --fan-out 3",
            "lastmile cost --events 300 --per second --answer 1s --output json",
        ],
    ),
    of_command(
        "publish",
        "docs/guides/publish.md",
        &[
            "lastmile publish --topic shop/orders -f order.json",
            "lastmile publish --topic shop/orders --stack orders-prod -f orders.ndjson",
            "lastmile publish --ingress http://127.0.0.1:8080/topics/shop/orders order.json",
            "lastmile publish --topic shop/orders --sample cloudevents --count 3",
            "lastmile publish --sample json --count 10 --dry-run > events.json",
        ],
    ),
    of_command(
        "secret",
        "docs/guides/secrets.md",
        &["lastmile secret", "lastmile secret --key-pair", "lastmile secret --output json"],
    ),
    of_command(
        "subscriber",
        "docs/guides/local.md",
        &[
            "lastmile subscriber",
            "lastmile subscriber --port 9000 --answer 503,503,200 --delay 2s",
            "lastmile subscriber --secret env:SIGNING_SECRET --require-signature",
        ],
    ),
    of_command(
        "completions",
        "docs/reference/commands.md",
        &[
            "lastmile completions bash > /etc/bash_completion.d/lastmile",
            "lastmile completions powershell",
        ],
    ),
    of_command("man", "docs/reference/commands.md", &["lastmile man /usr/local/share/man/man1"]),
];
