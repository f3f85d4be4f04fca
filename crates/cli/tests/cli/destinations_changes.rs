//! `lastmile destinations disable` and `enable`: the item is changed and the change is told, and
//! nothing is lost that functions write at the same moment.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adapters::machine::Machine;
use adapters::table::DynamoTable;
use axum::Router;
use axum::http::StatusCode;
use delivery::delivery::health::news::News;
use delivery::delivery::health::notice::Transition;
use delivery::delivery::health::shared::{DestinationState, Document as _};
use delivery::ports::Clock as _;
use delivery::table::{Expected, Table as _};
use local::aws::{LocalAws, LocalAwsConfig, TABLE, local_clients};
use tempfile::TempDir;

use crate::check_stack::cloud_formation;
use crate::deployments::deploy;
use crate::sample_destinations::{
    BILLING, CRM, MAIL, Printed, SEARCH, SUBSCRIPTIONS, destinations, disabled, failing, fails,
    folder, item, key, lastmile, slow,
};

const KNOWN: &str = "functions read the change within 30 seconds\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_to_a_topic_makes_no_requests_to_stop_or_try() {
    let (folder, _known) = folder().await;
    let forward = "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: b, namespace: n}\n---\n\
                   apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: c, namespace: n}\n---\n\
                   apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t, namespace: n}\n\
                   spec: {broker: b, subscriber: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: c}}}\n";
    deploy(folder.path(), forward);
    for verb in [&["disable"][..], &["enable", "--once"]] {
        let printed = destinations(folder.path(), &[verb, &["n/b/t"]].concat());
        assert_eq!((printed.code, printed.out.as_str()), (Some(1), ""), "{}", printed.beside);
        let says = "n/b/t forwards events to the topic n/c without requests, so it cannot be \
                    disabled or probed";
        assert!(printed.beside.contains(says), "{}", printed.beside);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn disable_and_enable_change_the_item_and_tell_it() {
    let (folder, known) = folder().await;
    let run = |arguments: &[&str]| {
        let printed = destinations(folder.path(), arguments);
        // The command for what was set aside while it was disabled.
        let is_enabled = printed.out.contains(": enabled: ");
        assert_eq!(printed.beside.contains("--until-quiet"), is_enabled, "{}", printed.beside);
        assert_eq!(printed.code, Some(0), "{arguments:?}");
        printed.out
    };
    // Nothing was known of it.
    let expected = format!(
        "https://billing.example.com/events: disabled: deliveries become dead letters \
         (DestinationDisabled), which you can replay after `lastmile destinations enable`\n  \
         shop/orders/billing\n  shop/refunds/billing\n{KNOWN}"
    );
    assert_eq!(run(&["disable", "shop/orders/billing"]), expected);
    let state = known.state(BILLING).await.expect("it is known");
    let by_operator = state.disabled.clone().expect("it is disabled");
    assert_eq!(by_operator.why, "by an operator");
    assert_eq!(
        (state.destination.as_str(), state.subscription.as_str()),
        ("https://billing.example.com/events", "shop/orders/billing")
    );
    assert!(known.news().await.disabled().contains(&key(BILLING)));

    let again = run(&["disable", "shop/orders/billing"]);
    assert!(again.contains("already disabled") && !again.contains(KNOWN), "{again}");
    assert_eq!(known.state(BILLING).await, Some(state.clone()));
    let enabled = run(&["enable", "https://billing.example.com/events"]);
    assert!(enabled.contains(": enabled: ") && enabled.ends_with(KNOWN), "{enabled}");
    assert_eq!(known.state(BILLING).await.and_then(|state| state.disabled), None);
    assert_eq!(known.news().await.unhealthy().count(), 0);
    let enabled = run(&["enable", BILLING]);
    assert!(enabled.contains(": already enabled\n") && !enabled.contains(KNOWN), "{enabled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_notices_gets_one_of_what_an_operator_changed() {
    let (folder, known) = folder().await;
    let kinds = async || {
        let state = known.state(CRM).await.expect("it is known");
        state.notices.iter().map(|notice| notice.kind).collect::<Vec<_>>()
    };
    let run = |verb: &str| {
        let printed = destinations(folder.path(), &[verb, "shop/orders/crm"]);
        assert_eq!(printed.code, Some(0), "{verb}: {}", printed.beside);
    };
    run("disable");
    assert_eq!(kinds().await, []);
    let notify_topic = |topic: &str| {
        let notifications = format!(
            "{SUBSCRIPTIONS}---\napiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {{topic: {topic}}}\n"
        );
        deploy(folder.path(), &notifications);
    };
    // A topic is not told of its own destinations.
    notify_topic("shop/orders");
    run("enable");
    assert_eq!(kinds().await, []);
    notify_topic("shop/refunds");
    run("disable");
    run("enable");
    assert_eq!(kinds().await, [Transition::Disabled, Transition::Enabled]);
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_forgets_what_was_known_and_of_a_failing_one_says_that_it_is_enabled() {
    let (folder, known) = folder().await;
    let state = failing(BILLING, "shop/orders/billing");
    known.write_state(BILLING, &state).await;
    let printed = destinations(folder.path(), &["enable", "shop/orders/billing"]);
    assert!(printed.code == Some(0) && printed.out.contains("already enabled, but not healthy"));
    assert_eq!(known.state(BILLING).await.as_ref(), Some(&state));
    let state = state.disabled_by_operator(Machine.now_ms());
    known.write_state(BILLING, &state).await;
    assert_eq!(destinations(folder.path(), &["enable", "shop/orders/billing"]).code, Some(0));
    let state = known.state(BILLING).await.expect("it is there");
    assert!(state.is_healthy() && state.disabled.is_none() && state.attempts.len() == 3);
    // The news is repaired where it differs from the item.
    let state = DestinationState::healthy(CRM, "shop/orders/crm", 1);
    known.write(&item(CRM), &state.entry()).await;
    let wrong = disabled(CRM, "shop/orders/crm");
    for news in News::of_state(key(CRM), &wrong, Machine.now_ms()) {
        known.write(&news.item(), &news.entry()).await;
    }
    let printed = destinations(folder.path(), &["enable", "shop/orders/crm"]);
    assert!(printed.out.contains("already enabled"), "{}", printed.out);
    assert_eq!(known.news().await.disabled().get(&key(CRM)), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_once_ends_the_wait_of_a_failing_destination() {
    let (folder, known) = folder().await;
    known.write_state(BILLING, &failing(BILLING, "shop/orders/billing")).await;
    let printed = destinations(folder.path(), &["enable", "--once", "shop/orders/billing"]);
    assert!(
        printed.out.contains("the next due delivery probes the destination;"),
        "{}",
        printed.beside
    );
    assert!(printed.code == Some(0) && printed.out.ends_with(KNOWN), "{}", printed.out);
    let state = known.state(BILLING).await.expect("it is there");
    let until_ms = state.failing.expect("it still is failing").until_ms;
    assert!(until_ms <= Machine.now_ms());
    let news = known.news().await;
    let health = news.health().find(|(_, health)| health.destination == key(BILLING));
    assert_eq!(health.and_then(|(_, health)| health.failing), state.failing);
    let printed = destinations(folder.path(), &["enable", "--once", "shop/orders/billing"]);
    assert!(printed.out.contains("already probes the destination") && !printed.out.contains(KNOWN));
    assert_eq!(known.state(BILLING).await, Some(state));
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_once_says_where_there_is_nothing_to_probe() {
    let (folder, known) = folder().await;
    known.write_state(MAIL, &slow(MAIL, "shop/orders/mail")).await;
    let printed = destinations(folder.path(), &["enable", "--once", "shop/orders/mail"]);
    assert!(
        printed.code == Some(0) && printed.out.contains("the destination is slow but not failing")
    );
    let printed = destinations(folder.path(), &["enable", "--once", SEARCH]);
    assert!(printed.code == Some(0) && printed.out.contains("the destination is not failing"));
    assert_eq!(known.state(SEARCH).await, None, "nothing is written");
    known.write_state(CRM, &disabled(CRM, "shop/orders/crm")).await;
    let printed = destinations(folder.path(), &["enable", "--once", "shop/orders/crm"]);
    let expected = "lastmile: https://crm.example.com/hooks is disabled, so no delivery probes it. \
                    Use `lastmile destinations enable` without --once\n";
    assert_eq!((printed.beside.as_str(), printed.code), (expected, Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_function_writes_again_and_again_is_kept() {
    let (folder, known) = folder().await;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let function = tokio::spawn(async move {
        let (mut last_ms, item) = (0, item(BILLING));
        while !stopped.load(Ordering::SeqCst) {
            let (stored, version) = known.read(&item).await.unzip();
            let now_ms = Machine.now_ms().max(last_ms + 1);
            let findings = fails(BILLING, "shop/orders/billing", now_ms);
            let state = DestinationState::merged(stored, &findings, now_ms);
            let expected = version.map_or(Expected::Nothing, Expected::Version);
            let replaced = known.table.replace(&item, &state.entry(), expected, now_ms).await;
            if replaced == Ok(true) {
                last_ms = now_ms;
            }
            // Functions write it when an attempt shows something, not all the time.
            Machine.sleep(100).await;
        }
        (last_ms, known)
    });
    for verb in ["disable", "enable", "disable"] {
        let printed = destinations(folder.path(), &[verb, "shop/orders/billing"]);
        assert_eq!(printed.code, Some(0), "{verb}: {}", printed.beside);
    }
    stop.store(true, Ordering::SeqCst);
    let (last_ms, known) = function.await.expect("it does not panic");
    let state = known.state(BILLING).await.expect("it is there");
    assert_eq!(state.attempts.last().map(|attempt| attempt.at_ms), Some(last_ms));
    assert!(state.disabled.is_some());
    assert!(known.news().await.disabled().contains(&key(BILLING)));
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    tokio::spawn(async { axum::serve(listener, router).await });
    address
}

/// A local AWS with subscriptions in its bucket, its data, and what its table holds.
async fn local_aws() -> (LocalAws, TempDir, DynamoTable) {
    let data = tempfile::tempdir().expect("a folder can be made");
    let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30);
    let aws = LocalAws::start(config).await.expect("the local AWS starts");
    let table = DynamoTable::new(&local_clients(&aws.endpoint()), TABLE.to_owned());
    deploy_in_bucket(&data, "shop/");
    (aws, data, table)
}

/// Puts the subscriptions below this prefix of the bucket, whose objects are files.
fn deploy_in_bucket(data: &TempDir, prefix: &str) {
    let to = format!("file://{}/config/{prefix}", data.path().display());
    std::fs::write(data.path().join("applied.yaml"), SUBSCRIPTIONS).expect("a file");
    let apply = ["apply", "-f", "applied.yaml", "--to", &to, "--yes"];
    let applied = Printed::by(&mut lastmile(data.path(), &apply));
    assert_eq!(applied.code, Some(0), "{}", applied.beside);
}

/// The program with AWS here.
fn with_aws(folder: &TempDir, endpoint: &str, arguments: &[&str]) -> Command {
    let mut command = lastmile(folder.path(), &[&["destinations"], arguments].concat());
    command.env("AWS_ENDPOINT_URL", endpoint);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_says_where_its_destinations_are() {
    let (aws, data, table) = local_aws().await;
    let state = failing(BILLING, "shop/orders/billing");
    let written = table.replace(&item(BILLING), &state.entry(), Expected::Anything, 0).await;
    assert_eq!(written, Ok(true));
    let output = |key: &str, value: &str| {
        format!("<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>")
    };
    let described = format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>live</StackName>\
         <Outputs>{}{}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>",
        output("ConfigBucketName", "config"),
        output("TableName", TABLE)
    );
    let cloud_formation = cloud_formation("200 OK", described);
    deploy_in_bucket(&data, "subscriptions/");
    let in_bucket = |to| vec!["--to", to, "--table", TABLE];
    for place in [vec!["--stack", "live"], in_bucket("s3://config/subscriptions/")] {
        let mut list = with_aws(&data, &aws.endpoint(), &[&["list"], &place[..]].concat());
        let printed = Printed::by(list.env("AWS_ENDPOINT_URL_CLOUDFORMATION", &cloud_formation));
        assert_eq!(printed.code, Some(0), "{}", printed.beside);
        assert!(printed.out.contains("shop/orders/billing"), "{}", printed.out);
    }
    for (place, says) in [
        (in_bucket("s3://"), "s3://bucket/prefix/"),
        (vec!["--to", "s3://config/subscriptions/"], "--table is missing"),
        (vec!["--table", TABLE], "--to is missing"),
        (vec!["--to", ".", "--table", TABLE], "--table is for a deployment in AWS"),
    ] {
        let mut list = with_aws(&data, &aws.endpoint(), &[&["list"], &place[..]].concat());
        let wrong = Printed::by(&mut list);
        assert!(wrong.code == Some(2) && wrong.beside.contains(says), "{}", wrong.beside);
    }
    aws.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_table_name_it_and_what_it_takes() {
    let (aws, data, _) = local_aws().await;
    let run = |endpoint: &str, table: &str| {
        let arguments = ["list", "--to", "s3://config/shop/", "--table", table];
        let mut list = with_aws(&data, &aws.endpoint(), &arguments);
        let printed = Printed::by(list.env("AWS_ENDPOINT_URL_DYNAMODB", endpoint));
        assert_eq!((printed.code, printed.out.as_str()), (Some(1), ""), "{}", printed.beside);
        printed.beside
    };
    let missing = run(&aws.endpoint(), "nowhere");
    let expected =
        "lastmile: cannot query partition @news of table nowhere: ResourceNotFoundException";
    assert!(missing.starts_with(expected), "{missing}");
    let denied = (
        StatusCode::BAD_REQUEST,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","Message":"no"}"#,
    );
    let refusing = serve(Router::new().fallback(move || async move { denied })).await;
    let refused = run(&refusing, TABLE);
    for part in [
        "AccessDeniedException: no; required permissions on the table: dynamodb:GetItem",
        "of table lastmile",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    let unreachable = run("http://127.0.0.1:1", TABLE);
    assert!(unreachable.contains("of table lastmile: no connection"), "{unreachable}");
    for debug in ["DispatchFailure", "ConnectorError", "{", "Some("] {
        assert!(!unreachable.contains(debug), "{debug} in {unreachable}");
    }
    aws.stop().await;
}
