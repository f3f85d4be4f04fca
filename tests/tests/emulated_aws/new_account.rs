//! A new account, whose functions may run ten times at once: what `sam deploy` alone makes there, and how it delivers
//! beside a destination that hangs.
//!
//! Separate from the shared deployment, whose account allows a thousand invocations and whose parameters are set.

use std::collections::BTreeSet;
use std::time::Duration;

use lastmile_tests::emulated::ReservedPort;
use tokio::runtime::Runtime;

use crate::stack::{Stack, has_tools};
use crate::subscriber::{Scripts, Subscriber};
use crate::{ARRIVAL_LIMIT, event, event_id, now};

/// The concurrent executions that AWS allows a new account.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const ACCOUNT: usize = 10;
const EVENTS: usize = 1_000;
/// One event in so many is for the destination that hangs.
const HANGING_SHARE: usize = 20;
/// The time limit until all events have ended. A throttled message is received again after six minutes.
const LIMIT: Duration = Duration::from_secs(15 * 60);

#[test]
#[ignore = "takes a minute; tests/nightly runs it"]
fn the_first_deployment_of_a_new_account_delivers_and_is_not_throttled_beside_a_hanging_endpoint() {
    if !has_tools() {
        return;
    }
    Runtime::new().expect("a runtime starts").block_on(async {
        let scripts = ["/healthy", "/hanging"].map(|path| (path, [200].as_slice()));
        let subscriber = Subscriber::start(Scripts::from(scripts)).await;
        subscriber.hold("/hanging");
        let documents = ["healthy", "hanging"].map(|name| subscription(&subscriber, name));
        let port = ReservedPort::take();
        let stack = Stack::deploy_in_account_of(ACCOUNT, port, documents.join("---\n")).await;
        assert_nothing_can_be_reserved(&stack).await;

        stack.publish("shop/healthy", &event("first")).await;
        subscriber.arrived("/healthy", ARRIVAL_LIMIT, |all| !all.is_empty()).await;

        let hanging: Vec<String> =
            (0..EVENTS / HANGING_SHARE).map(|number| event(&format!("hanging-{number}"))).collect();
        let healthy: Vec<String> =
            (hanging.len()..EVENTS).map(|number| event(&format!("healthy-{number}"))).collect();
        stack.publish_all("shop/hanging", &hanging).await;
        stack.publish_all("shop/healthy", &healthy).await;
        let deadline = now() + LIMIT;
        loop {
            let arrived: BTreeSet<String> =
                subscriber.arrivals("/healthy").iter().map(event_id).collect();
            let letters = stack.dead_letters("shop/hanging/").await.len();
            // And the first one.
            if arrived.len() > healthy.len() && letters >= hanging.len() {
                break;
            }
            assert!(now() < deadline, "{} arrived, {letters} dead letters", arrived.len());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // The emulated AWS logs an invocation that it throttles like one that fails.
        let log = stack.server_log();
        assert!(!log.contains("failed processing SQS batch"), "an invocation was throttled");
        let lines = stack.log_lines();
        let is = |message: &str| lines.iter().filter(|line| line["message"] == message).count();
        assert!(is("delivery.delivered") >= healthy.len(), "the log has the deliveries");
        assert_eq!(is("record.isolated"), 0);
    });
}

/// The account reports its limit, and refuses every reservation: below a hundred, Lambda keeps all for functions that
/// reserve none.
async fn assert_nothing_can_be_reserved(stack: &Stack) {
    let lambda = stack.lambda();
    let settings = lambda.get_account_settings().send().await.expect("the account has settings");
    let limit = settings.account_limit.expect("it has a limit").concurrent_executions;
    assert_eq!(usize::try_from(limit), Ok(ACCOUNT));
    let reserve = lambda.put_function_concurrency().reserved_concurrent_executions(1);
    let reserve = reserve.function_name(stack.output("DispatchFunctionName")).send().await;
    let refused = reserve.expect_err("nothing can be reserved").into_service_error();
    assert!(refused.to_string().contains("below its minimum value of [10]"), "{refused}");
}

/// Two attempts of three seconds. Probation would put off the events of the destination that hangs.
fn subscription(subscriber: &Subscriber, name: &str) -> String {
    let address = subscriber.address;
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: {name}, name: all}}\n\
         spec:\n  destination: {{url: \"http://{address}/{name}\", timeout: PT3S, probation: false}}\n  \
         retry: {{maxAttempts: 2, jitterPercent: 0, schedule: {{kind: waits, waits: [PT1S]}}}}\n"
    )
}
