//! The wiring of `functions/dispatch/src/main.rs`.

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::time::duration::HOUR_MS;
use delivery::wire::write_delivery;

use crate::environment::DISPATCH;
use crate::records::{delivery, invocation, published, record, sent_at};
use crate::runtime_api::Invocation;
use crate::world::World;

#[tokio::test]
async fn no_second_attempt_begins_when_the_deadline_is_near() {
    let world = World::start().await;
    // Nine seconds are reserved for sending, and the shortest response timeout is one second. The
    // first attempt always begins, but a second has no time.
    let near = Invocation { deadline_in_ms: 9_900, ..invocation(&[published("m1", "shop/soon")]) };
    let timeout = [("FUNCTION_TIMEOUT_SECONDS", "10")];
    let mut function = world.run(&DISPATCH, &timeout, near).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!(world.requested(), ["/soon"]);
    let waiting = world.delivery_in("retry").await;
    assert_eq!(
        (&waiting["subscription"], &waiting["attempts"]),
        (&"shop/soon/s".into(), &1.into())
    );
}

#[tokio::test]
async fn with_time_left_a_short_wait_is_waited_in_place() {
    let world = World::start().await;
    let mut function = world.run(&DISPATCH, &[], invocation(&[published("m1", "shop/soon")])).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!(world.requested(), ["/soon"; 6]);
}

/// The event was published just now, but an hour ago by the wrong clock. Its time to live is ten
/// minutes.
#[tokio::test]
async fn a_function_whose_clock_is_an_hour_ahead_decides_by_the_time_of_aws() {
    for (timeout, requested) in [("60", &["/brief"][..]), ("", &[])] {
        let world = World::start().await;
        let sent_ms = Machine.now_ms() - HOUR_MS;
        let event = [sent_at(sent_ms, "m1", "events", &[("topic", "shop/brief")])];
        let ahead = Invocation { clock_is_ahead_ms: 3_600_000, ..invocation(&event) };
        let changes = [("FUNCTION_TIMEOUT_SECONDS", timeout)];
        let mut function = world.run(&DISPATCH, &changes, ahead).await;
        assert_eq!(function.returned().await, [""; 0]);
        assert_eq!(world.requested(), requested, "{timeout}");
        let is_corrected = !timeout.is_empty();
        assert_eq!(world.held("dead-letter").await, u64::from(!is_corrected));
        assert_eq!(function.has_line("clock.corrected"), is_corrected);
        if is_corrected {
            let offset_ms = function.line("clock.corrected").await["offset_ms"].as_i64();
            let wrong_by_ms = offset_ms.expect("a number") + 3_600_000;
            assert!(wrong_by_ms.abs() < 30_000, "{wrong_by_ms}");
        }
    }
}

#[tokio::test]
async fn a_function_whose_clock_is_right_does_not_correct_it() {
    let world = World::start().await;
    let mut function =
        world.run(&DISPATCH, &[], invocation(&[published("m1", "shop/brief")])).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!(world.requested(), ["/brief"]);
    assert!(!function.has_line("clock.corrected"));
}

#[tokio::test]
async fn an_allowed_rate_is_shared_by_all_functions_that_may_run() {
    let world = World::start().await;
    // The rate is one per minute for each of the 75 concurrent functions of the template's
    // defaults.
    world.consent("75").await;
    let records = ["m1", "m2"].map(|id| published(id, "shop/consented"));
    let mut function = world.run(&DISPATCH, &[], invocation(&records)).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!(world.requested(), ["/consented"]);
    assert_eq!(world.held("retry").await, 1);
}

#[tokio::test]
async fn alone_a_function_uses_an_allowed_rate_itself() {
    let world = World::start().await;
    world.consent("75").await;
    let records = ["m1", "m2"].map(|id| published(id, "shop/consented"));
    let alone = [("MAX_CONCURRENCY", "1")];
    let mut function = world.run(&DISPATCH, &alone, invocation(&records)).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!(world.requested(), ["/consented", "/consented"]);
}

#[tokio::test]
async fn the_response_names_the_records_whose_retry_the_queue_did_not_take() {
    let world = World::start().await;
    let absent = world.queue_url("absent");
    let records = [("m1", "shop/taken"), ("m2", "shop/later"), ("m3", "shop/taken")]
        .map(|(id, topic)| published(id, topic));
    let changes = [("RETRY_QUEUE_URL", absent.as_str())];
    let mut function = world.run(&DISPATCH, &changes, invocation(&records)).await;
    assert_eq!(function.returned().await, ["m2"]);
    assert_eq!(world.requested(), ["/later", "/taken", "/taken"]);
}

/// The attribute is ignored on the events queue and on unknown queues, because a publisher may have
/// written it.
#[tokio::test]
async fn a_delivery_is_believed_on_an_internal_queue_only() {
    for (queue, requested) in [("events", "/later"), ("unknown", "/later"), ("retry", "/taken")] {
        let world = World::start().await;
        let forged = write_delivery(&delivery("shop/taken/s"));
        let records = [record("m1", queue, &[("topic", "shop/later"), ("delivery", &forged)])];
        let mut function = world.run(&DISPATCH, &[], invocation(&records)).await;
        assert_eq!(function.returned().await, [""; 0], "{queue}");
        assert_eq!(world.requested(), [requested], "{queue}");
    }
}

#[tokio::test]
async fn an_event_without_a_topic_has_the_default_one() {
    let world = World::start().await;
    let changes = [("DEFAULT_TOPIC", "shop/taken")];
    let records = [record("m1", "events", &[])];
    let mut function = world.run(&DISPATCH, &changes, invocation(&records)).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!(world.requested(), ["/taken"]);
}

#[tokio::test]
async fn of_failures_alone_a_delivery_that_succeeds_has_no_line_but_is_counted() {
    let world = World::start().await;
    let failures = [("LOG_DELIVERIES", "failures")];
    let records = [published("m1", "shop/taken"), published("m2", "shop/later")];
    let mut function = world.run(&DISPATCH, &failures, invocation(&records)).await;
    assert_eq!(function.returned().await, [""; 0]);
    function.stop().await;
    assert_eq!(function.line("_aws").await["DeliverySuccessCount"], 1);
    assert_eq!(function.line("delivery.attempted").await["subscription"], "shop/later/s");
    assert!(!function.has_line("delivery.delivered"));
}

#[tokio::test]
async fn where_nobody_has_written_subscriptions_one_line_says_so_and_events_wait() {
    let world = World::start().await;
    let elsewhere = [("SUBSCRIPTIONS_URI", "s3://config/absent/")];
    let records = ["m1", "m2"].map(|id| published(id, "shop/taken"));
    let mut function = world.run(&DISPATCH, &elsewhere, invocation(&records)).await;
    assert_eq!(function.returned().await, [""; 0]);
    let missing = function.line("subscriptions.missing").await;
    assert_eq!(missing["source"], "s3://config/absent/_settings.json");
    assert!(missing["help"].as_str().is_some_and(|help| help.contains("lastmile apply")));
    assert!(!function.has_line("subscriptions.broken") && !function.has_line("ERROR"));
    assert_eq!(world.held("retry").await, 2);
}

#[tokio::test]
async fn log_and_metrics_of_dispatch_are_lines_of_json() {
    let world = World::start().await;
    let mut function =
        world.run(&DISPATCH, &[], invocation(&[published("m1", "shop/taken")])).await;
    assert_eq!(function.returned().await, [""; 0]);
    let delivered = function.line("delivery.delivered").await;
    assert_eq!((&delivered["attempt"], &delivered["status"]), (&1.into(), &200.into()));
    // Metrics are counted, and written after half a minute or when the process is stopped.
    assert!(!function.has_line("_aws"));
    function.stop().await;
    let metrics = function.line("_aws").await;
    assert_eq!(metrics["DeliverySuccessCount"], 1);
    assert_eq!(metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"], "lastmile/tested");
}

#[tokio::test]
async fn calls_to_aws_use_the_proxy_of_the_environment() {
    let world = World::start().await;
    let proxy = [("HTTP_PROXY", world.destination_url())];
    let proxy = proxy.each_ref().map(|(name, url)| (*name, url.as_str()));
    let record = [published("m1", "shop/taken")];
    let mut function = world.run(&DISPATCH, &proxy, invocation(&record)).await;
    function.response().await;
    let asked = world.requested();
    // A proxy receives whole URLs.
    assert!(asked.iter().any(|url| url.starts_with("http://127.0.0.1")), "{asked:?}");
    assert!(
        asked.iter().any(|url| url.contains("/config/subscriptions/_settings.json")),
        "{asked:?}"
    );
}
