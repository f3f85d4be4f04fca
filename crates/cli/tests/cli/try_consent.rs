//! `lastmile try --consent` as a person uses it: its requests, its output, the consents that it
//! stores, its exit codes.

use std::path::Path;

use crate::programs::{self, Running, exchange, lastmile, run, word};
use crate::sample_destinations::Known;

const CLOUD_EVENTS: &str =
    ", consent: {handshake: cloudevents, origin: events.example.com, rate: 120}";
const EVENT_GRID: &str = ", consent: {handshake: eventgrid}";

/// The sample subscriber, which consents to everything, and its address.
fn subscriber(folder: &Path) -> (Running, String) {
    let mut running = Running::start(lastmile(folder, &["subscriber", "--port", "0"]));
    let url = word(&running.line_with("listening"), "http://");
    (running, url)
}

/// A receiver that gives every request this response; its address.
fn receiver(answer: &'static str) -> String {
    programs::receiver(answer).0
}

const SILENT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

fn document(name: &str, url: &str, consent: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: \"{url}\"{consent}}}}}\n"
    )
}

fn folder(documents: &[String]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("s.yaml"), documents.join("---\n"))
        .expect("the file can be written");
    folder
}

/// The consents that the table holds.
async fn stored(known: &Known) -> Vec<String> {
    let items = known.table.all("shop").await.expect("the table answers");
    let consents = items.into_iter().filter(|(item, _)| item.sort.ends_with("#consent"));
    consents.map(|(_, stored)| stored.text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_handshakes_with_a_subscriber_that_consents_are_granted_and_stored() {
    let here = tempfile::tempdir().expect("a folder can be made");
    let (_subscriber, url) = subscriber(here.path());
    let folder = folder(&[
        document("a", &url, CLOUD_EVENTS),
        document("b", &url, EVENT_GRID),
        document("c", "https://nobody.invalid/", ""),
    ]);
    let known = Known::beside(folder.path()).await;
    let (printed, code) = run(folder.path(), &["try", "--consent", "-f", "s.yaml"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("granted, 120 requests per minute")
            && printed.contains("granted, any rate"),
        "{printed}"
    );
    assert!(
        printed.contains("2 of 2 endpoints have consented; nothing was stored")
            && !printed.contains("orders/c"),
        "{printed}"
    );
    assert_eq!(stored(&known).await.len(), 0);

    let (printed, code) = run(folder.path(), &["try", "--consent", "-f", "s.yaml", "--to", "."]);
    assert!(code == Some(0) && printed.contains("the consents were stored"), "{printed}");
    let mut found = stored(&known).await;
    found.sort();
    assert!(
        found[0].contains("\"handshake\":\"cloudevents\"")
            && found[0].contains("\"allowed_rate\":\"120\"")
    );
    assert!(found[1].contains("\"handshake\":\"eventgrid\""), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_consent_is_reported_with_its_reason_and_exit_code_1() {
    let redirect = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n";
    let other =
        "HTTP/1.1 200 OK\r\nwebhook-allowed-origin: other.example.com\r\ncontent-length: 0\r\n\r\n";
    let folder = folder(&[
        document("a", &receiver(SILENT), EVENT_GRID),
        document("b", &receiver(redirect), CLOUD_EVENTS),
        document("c", &receiver(other), CLOUD_EVENTS),
        document("d", "http://10.1.2.3/", CLOUD_EVENTS),
    ]);
    let known = Known::beside(folder.path()).await;
    let (printed, code) = run(folder.path(), &["try", "--consent", "-f", "s.yaml", "--to", "."]);
    assert_eq!(code, Some(1), "{printed}");
    for part in [
        "without a",
        "redirects",
        "other.example.com",
        "the handshake request failed",
        "0 of 4",
        "--listen",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    assert_eq!(stored(&known).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_confirmation_url_confirms_for_an_endpoint_that_cannot_and_may_set_the_rate() {
    for (consent, query, granted) in [
        (EVENT_GRID, "", "granted, any rate"),
        (CLOUD_EVENTS, "", "granted, 120 requests per minute"),
        (CLOUD_EVENTS, "?rate=7", "granted, 7 requests per minute"),
    ] {
        let folder = folder(&[document("a", &receiver(SILENT), consent)]);
        let known = Known::beside(folder.path()).await;
        let stored_here = ["try", "--consent", "-f", "s.yaml", "--to", "."];
        let listening = ["--listen", "127.0.0.1:0", "--wait", "PT2M"];
        let arguments = [&stored_here[..], &listening].concat();
        let mut running = Running::start(lastmile(folder.path(), &arguments));
        let url = word(&running.line_with("pending; confirm"), "http://");
        let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
        let get =
            |path: &str| exchange(host, &format!("GET /{path}"), &format!("host: {host}\r\n"), "");
        assert!(get("guessed").starts_with("HTTP/1.1 404"));
        // The address of an Event Grid handshake has no rate: it would confirm, and nothing listens
        // afterwards.
        if consent == CLOUD_EVENTS {
            assert!(get(&format!("{path}?rate=0")).starts_with("HTTP/1.1 400"));
        }
        assert!(get(&format!("{path}{query}")).starts_with("HTTP/1.1 200"));
        running.line_with(granted);
        assert_eq!((running.code(), stored(&known).await.len()), (Some(0), 1));
    }
}

#[test]
fn a_consent_that_nobody_confirms_in_time_is_pending_and_exit_code_1() {
    let folder = folder(&[document("a", &receiver(SILENT), CLOUD_EVENTS)]);
    let arguments = [
        "try",
        "--consent",
        "-f",
        "s.yaml",
        "--listen",
        "127.0.0.1:0",
        "--public-url",
        "https://me.example.com/x",
    ];
    let (printed, code) = run(folder.path(), &[&arguments[..], &["--wait", "PT0.2S"]].concat());
    assert!(
        code == Some(1) && printed.contains("pending: no confirmation arrived in time"),
        "{printed}"
    );
    assert!(printed.contains("GET or POST to https://me.example.com/x/"), "{printed}");
}

#[test]
fn a_named_subscription_can_be_validated_by_another_handshake_than_its_file_has() {
    let here = tempfile::tempdir().expect("a folder can be made");
    let (_subscriber, url) = subscriber(here.path());
    let folder =
        folder(&[document("a", &url, ""), document("b", "https://nobody.invalid/", EVENT_GRID)]);
    let named = ["try", "--consent", "-f", "s.yaml", "shop/orders/a"];
    let with = |more: &[&str]| run(folder.path(), &[&named[..], more].concat());
    let (printed, code) = with(&["--handshake", "eventgrid"]);
    assert!(code == Some(0) && printed.contains("1 of 1"), "{printed}");
    let (printed, code) =
        with(&["--handshake", "cloudevents", "--origin", "a.example.com", "--rate", "9"]);
    assert!(
        code == Some(0)
            && printed.contains("granted, 9 requests")
            && printed.contains("a.example.com"),
        "{printed}"
    );
    for (more, says) in [
        (&[][..], "--handshake"),
        (&["--handshake", "cloudevents"], "--origin"),
        (&["--event", "s.yaml"], "--consent"),
        (&["--handshake", "eventgrid", "--rate", "9"], "cannot be combined with --origin"),
        (&["--handshake", "eventgrid", "shop/orders/none"], "there is no subscription"),
    ] {
        let (printed, code) = with(more);
        assert!(code == Some(2) && printed.contains(says), "{more:?}: {printed}");
    }
}

#[test]
fn a_usage_error_is_exit_code_2_and_no_endpoint_to_validate_is_0() {
    let folder = folder(&[document("a", "https://nobody.invalid/", "")]);
    let (printed, code) = run(folder.path(), &["try", "--consent", "-f", "s.yaml"]);
    assert!(code == Some(0) && printed.contains("no subscription requires consent"), "{printed}");
    assert_eq!(run(folder.path(), &["try", "--consent", "-f", "nowhere.yaml"]).1, Some(2));
    std::fs::write(folder.path().join("broken.yaml"), "kind: Subscription\n")
        .expect("the file can be written");
    assert_eq!(run(folder.path(), &["try", "--consent", "-f", "broken.yaml"]).1, Some(1));
    let consents = document("a", &receiver(SILENT), EVENT_GRID);
    std::fs::write(folder.path().join("s.yaml"), consents).expect("the file can be written");
    let (printed, code) =
        run(folder.path(), &["try", "--consent", "-f", "s.yaml", "--to", "s3://"]);
    assert!(
        code == Some(2) && printed.contains("expected s3://bucket/prefix/ or file:///folder/"),
        "{printed}"
    );
}
