//! `lastmile destinations list` and `show`, over a table as functions write it:
//! `transcripts/destinations.md`, and what needs another table.

use delivery::table::Entry;
use delivery::time::duration::MINUTE_MS;
use tempfile::TempDir;

use crate::deployments::deploy;
use crate::sample_destinations::{
    BILLING, CRM, Known, MAIL, SEARCH, SUBSCRIPTIONS, destinations, disabled, failing, folder,
    item, key, recovered, slow,
};
use crate::transcripts;

/// `2026-11-20 07:03:00Z`, with digits for what is no digit here.
const TIME: &str = "0000-00-00 00:00:00Z";
const TIME_CHARS: usize = TIME.len();

/// One destination that is failing, one that is slow, one that is disabled, one that is healthy
/// again.
async fn four() -> (TempDir, Known) {
    let (folder, known) = folder().await;
    known.write_state(BILLING, &failing(BILLING, "shop/orders/billing")).await;
    known.write_state(MAIL, &slow(MAIL, "shop/orders/mail")).await;
    known.give_out(MAIL, 20, 12 * 60 + 30).await;
    known.write_state(CRM, &disabled(CRM, "shop/orders/crm")).await;
    known.write_state(SEARCH, &recovered(SEARCH, "shop/orders/search")).await;
    (folder, known)
}

/// The text with all of its times the same, and the seconds until the probe.
fn timeless(text: &str) -> String {
    let until_probe =
        |text: String, seconds| text.replace(&format!("in 3 min {seconds} s"), "in 3 min 29 s");
    let text: &str = &(10..=30).fold(text.to_owned(), until_probe);
    let is_time = |text: &str| {
        let zeros: String =
            text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        zeros == TIME
    };
    let (mut timeless, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let found = rest.get(..TIME_CHARS).is_some_and(is_time);
        let step = if found { TIME_CHARS } else { first.len_utf8() };
        timeless.push_str(if found { TIME } else { &rest[..step] });
        rest = &rest[step..];
    }
    timeless
}

/// One more destination, which has a limit.
const LIMITED: &str = "---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: limited}
spec: {destination: {url: 'https://limited.example.com/', maxConcurrency: 3}}
";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_four_destinations() {
    let (folder, known) = four().await;
    deploy(folder.path(), &format!("{SUBSCRIPTIONS}{LIMITED}"));
    let limited = "https://limited.example.com/";
    known.give_permit(limited, 1, 0).await;
    known.give_permit(limited, 2, 5 * MINUTE_MS).await;
    transcripts::run_in("destinations", folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_known_all_is_healthy() {
    let (folder, _known) = folder().await;
    let listed = destinations(folder.path(), &["list"]);
    let expected = "all destinations are healthy according to the table\n";
    assert_eq!((listed.out.as_str(), listed.code), (expected, Some(0)), "{}", listed.beside);
    let listed = destinations(folder.path(), &["list", "--output", "json"]);
    assert_eq!((listed.out.as_str(), listed.code), ("[]\n", Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_cannot_be_read_is_reported_and_the_others_are_listed() {
    let (folder, known) = four().await;
    let newer = Entry { text: r#"{"v":2}"#.to_owned(), expires_ms: None };
    known.write(&item(SEARCH), &newer).await;
    let listed = destinations(folder.path(), &["list"]);
    let problem = format!(
        "item {} cannot be used: version 2 of the document is not supported; use a newer version \
         of lastmile\n",
        item(SEARCH)
    );
    assert_eq!((listed.code, listed.beside.as_str()), (Some(1), problem.as_str()));
    assert!(listed.out.contains("shop/orders/crm"), "{}", listed.out);
    let shown = destinations(folder.path(), &["show", "shop/orders/search"]);
    assert_eq!((shown.code, shown.beside), (Some(1), format!("lastmile: {problem}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_says_how_fast_a_destination_recovers_and_why() {
    let (folder, known) = folder().await;
    known.recovers(SEARCH, 7, 1).await;
    let shown = destinations(folder.path(), &["show", SEARCH]).out;
    let line = shown.lines().find(|line| line.starts_with("recovery")).expect("a line");
    assert!(line.contains("at most 4 requests per second since "), "{line}");
    assert!(line.ends_with("results since then: 7 good, 1 failed"), "{line}");
    let json = destinations(folder.path(), &["show", SEARCH, "--output", "json"]).json();
    let recovery = &json["recovery"];
    let numbers = ["rate", "good", "failed", "ceiling"].map(|name| recovery[name].as_u64());
    assert_eq!(numbers, [Some(4), Some(7), Some(1), None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_its_query_may_name_two_destinations() {
    let (folder, known) = four().await;
    let billing = key(BILLING).to_string();
    let other = "https://billing.example.com/events?code=other";
    let state = failing(other, "shop/orders/gone");
    known.write_state(other, &state).await;
    let shown = destinations(folder.path(), &["show", "https://billing.example.com/events"]);
    assert_eq!(shown.code, Some(1));
    for part in ["matches 2 destinations", &billing, &key(other).to_string(), "shop/orders/gone"] {
        assert!(shown.beside.contains(part), "{part} in {}", shown.beside);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_destinations_shows_what_the_program_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/destination-down.md");
    let page = std::fs::read_to_string(page).expect("there is the page");
    let page = transcripts::without_widths(&timeless(&page));
    let (folder, _known) = four().await;
    for verb in [&["list"][..], &["show", "shop/orders/billing"]] {
        let printed =
            transcripts::without_widths(&timeless(&destinations(folder.path(), verb).out));
        let indented = printed.lines().map(|line| format!("   {line}").trim_end().to_owned());
        let indented = indented.collect::<Vec<_>>().join("\n");
        assert!(page.contains(&printed) || page.contains(&indented), "not on the page:\n{printed}");
    }
}
