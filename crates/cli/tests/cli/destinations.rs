//! `lastmile destinations list` and `show`, over a table as functions write it.

use delivery::table::Entry;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::deployments::{deploy, object};
use crate::sample_destinations::{
    BILLING, CRM, Known, MAIL, Printed, SEARCH, SUBSCRIPTIONS, destinations, disabled, failing,
    folder, item, key, lastmile, recovered, slow,
};

/// `2026-11-20 07:03:00Z`, with digits for what is no digit here.
const TIME: &str = "0000-00-00 00:00:00Z";
const TIME_CHARS: usize = TIME.len();

/// One destination that is failing, one that is slow, one that is disabled, one that is healthy again.
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

#[tokio::test(flavor = "multi_thread")]
async fn list_names_what_is_not_healthy_and_since_when_and_who_delivers_there() {
    let (folder, _known) = four().await;
    let listed = destinations(folder.path(), &["list"]);
    assert_eq!((listed.code, listed.beside.as_str()), (Some(0), ""), "{}", listed.out);
    insta::assert_snapshot!(timeless(&listed.out));
    assert!(!listed.out.contains("secret"), "{}", listed.out);
    let all = destinations(folder.path(), &["list", "--all"]);
    let healthy: Vec<&str> = all.out.lines().filter(|line| line.contains("healthy")).collect();
    assert!(healthy.len() == 1 && healthy[0].contains("shop/orders/search"), "{}", all.out);
}

#[test]
fn in_a_folder_in_which_nothing_runs_nothing_is_known() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let listed = destinations(folder.path(), &["list"]);
    let expected = "lastmile: no lastmile dev uses the data folder .; what it knew of destinations ended with it\n";
    assert_eq!((listed.code, listed.beside.as_str()), (Some(1), expected), "{}", listed.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn list_as_json_has_every_member_for_tools() {
    let (folder, _known) = four().await;
    let listed = destinations(folder.path(), &["list", "--output", "json", "--all"]);
    let json = listed.json();
    let found = json.as_array().expect("an array");
    let members = [
        "key",
        "destination",
        "subscriptions",
        "healthy",
        "failing",
        "refusing",
        "slow",
        "disabled",
        "next_attempt_at",
        "changed_at",
    ];
    for one in found {
        let one = one.as_object().expect("an object");
        assert_eq!(one.len(), members.len());
        assert!(members.iter().all(|member| one.contains_key(*member)), "{one:?}");
    }
    let of = |url: &str| {
        let key = Value::from(key(url).to_string());
        found.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("{url} in {json}"))
    };
    let billing = of(BILLING);
    assert_eq!(billing["destination"], "https://billing.example.com/events");
    assert_eq!(billing["subscriptions"], json!(["shop/orders/billing", "shop/refunds/billing"]));
    assert_eq!(billing["failing"]["until"], billing["next_attempt_at"]);
    assert_eq!((&billing["slow"], &billing["healthy"]), (&Value::Null, &json!(false)));
    let disabled = &of(CRM)["disabled"];
    assert_eq!(disabled["why"], "by an operator");
    assert_eq!(of(MAIL)["failing"], Value::Null);
    assert_eq!((&of(SEARCH)["healthy"], found.len()), (&json!(true), 4));
    let unhealthy = destinations(folder.path(), &["list", "--output", "json"]).json();
    assert_eq!(unhealthy.as_array().map(Vec::len), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_known_all_is_healthy() {
    let (folder, _known) = folder().await;
    let listed = destinations(folder.path(), &["list"]);
    let expected = "all destinations are healthy, as far as the table tells\n";
    assert_eq!((listed.out.as_str(), listed.code), (expected, Some(0)), "{}", listed.beside);
    let listed = destinations(folder.path(), &["list", "--output", "json"]);
    assert_eq!((listed.out.as_str(), listed.code), ("[]\n", Some(0)));
    // A mistyped folder is not one in which all is well.
    let listed = destinations(folder.path(), &["list", "--to", "nowhere"]);
    let expected = "lastmile: nowhere is no folder\n";
    assert_eq!((listed.beside.as_str(), listed.code), (expected, Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_subscriptions_the_known_say_who_delivers_there() {
    let (folder, _known) = four().await;
    let config = folder.path().to_str().expect("the path is text");
    let elsewhere = tempfile::tempdir().expect("a folder can be made");
    let list = ["list", "--to", config];
    for topic in ["orders", "refunds"] {
        let topic = object(folder.path(), &format!("shop/{topic}.json"));
        std::fs::write(topic, "damaged").expect("written");
    }
    let listed = destinations(elsewhere.path(), &list);
    assert!(listed.beside.contains("has errors"), "{}", listed.beside);
    std::fs::remove_dir_all(folder.path().join("subscriptions")).expect("removed");
    let listed = destinations(elsewhere.path(), &list);
    assert!(listed.beside.contains("nothing is there yet"), "{}", listed.beside);
    assert!(listed.out.contains("shop/orders/billing"), "{}", listed.out);
    assert!(!listed.out.contains("shop/refunds/billing"), "{}", listed.out);
    // A subscription that is gone still names its destination.
    let shown = destinations(elsewhere.path(), &["show", "shop/orders/crm", "--to", config]);
    assert!(shown.code == Some(0) && shown.out.contains("crm.example.com"), "{}", shown.out);
    // The folder of the objects itself.
    deploy(folder.path(), SUBSCRIPTIONS);
    let objects = folder.path().join("subscriptions");
    let objects = objects.to_str().expect("the path is text");
    let shown = destinations(elsewhere.path(), &["show", BILLING, "--to", objects]);
    assert!(shown.beside.is_empty() && shown.out.contains("refunds"), "{}", shown.beside);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_cannot_be_read_is_reported_and_the_others_are_listed() {
    let (folder, known) = four().await;
    let newer = Entry { text: r#"{"v":2}"#.to_owned(), expires_ms: None };
    known.write(&item(SEARCH), &newer).await;
    let listed = destinations(folder.path(), &["list"]);
    let problem = format!("item {} cannot be used: its version 2 is not known\n", item(SEARCH));
    assert_eq!((listed.code, listed.beside.as_str()), (Some(1), problem.as_str()));
    assert!(listed.out.contains("shop/orders/crm"), "{}", listed.out);
    let shown = destinations(folder.path(), &["show", "shop/orders/search"]);
    assert_eq!((shown.code, shown.beside), (Some(1), format!("lastmile: {problem}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_wrote_cannot_move_the_cursor() {
    let (folder, known) = folder().await;
    let mut state = failing(BILLING, "shop/\u{1b}[2Jorders/x");
    state.destination = "https://\u{1b}[2J.example.com/".to_owned();
    known.write_state("https://other.example.com/", &state).await;
    for verb in [&["list"][..], &["show", &key("https://other.example.com/").to_string()]] {
        let printed = destinations(folder.path(), verb);
        assert!(printed.code == Some(0) && printed.out.contains("[2J"), "{}", printed.beside);
        assert!(!printed.out.contains('\u{1b}'), "{}", printed.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn show_says_why_what_was_tried_and_what_happens_next() {
    let (folder, _known) = four().await;
    let shown = destinations(folder.path(), &["show", "shop/orders/billing"]);
    assert_eq!((shown.code, shown.beside.as_str()), (Some(0), ""), "{}", shown.out);
    insta::assert_snapshot!(timeless(&shown.out));
    let shown = destinations(folder.path(), &["show", MAIL]);
    insta::assert_snapshot!(timeless(&shown.out));
    let shown = destinations(folder.path(), &["show", "shop/orders/crm"]);
    insta::assert_snapshot!(timeless(&shown.out));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_of_a_healthy_destination_says_so() {
    let (folder, known) = four().await;
    let shown = destinations(folder.path(), &["show", "shop/orders/search"]);
    assert!(shown.out.contains("healthy; this changed last "), "{}", shown.out);
    assert!(shown.out.contains("deliveries are attempted as they come"), "{}", shown.out);
    let expired = Entry { text: String::new(), expires_ms: Some(1) };
    known.write(&item(SEARCH), &expired).await;
    let shown = destinations(folder.path(), &["show", "shop/orders/search"]);
    assert!(shown.out.contains("healthy: no attempt has shown anything else"), "{}", shown.out);
    assert_eq!(shown.code, Some(0));
    let shown = destinations(folder.path(), &["show", "shop/orders/search", "--output", "json"]);
    let json = shown.json();
    assert_eq!((&json["healthy"], &json["attempts"]), (&json!(true), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_as_json_has_attempts_rate_and_notices() {
    let (folder, known) = four().await;
    let show = |name: &str| destinations(folder.path(), &["show", name, "--output", "json"]).json();
    let billing = show("shop/refunds/billing");
    let state = known.state(BILLING).await.expect("it is there");
    let attempts = billing["attempts"].as_array().expect("an array");
    assert_eq!(attempts.len(), 3);
    assert_eq!(attempts[2]["outcome"], "Busy");
    assert_eq!((&attempts[2]["status"], &attempts[2]["duration_ms"]), (&json!(503), &json!(12)));
    let notice = &billing["notices"][0];
    assert_eq!((&notice["kind"], &notice["id"]), (&json!("failing"), &json!(state.notices[0].id)));
    let limits = ["max_per_second", "next_slot_at", "max_concurrency", "permits_in_use"];
    for member in limits.into_iter().chain(["probe_until"]) {
        assert_eq!(billing.get(member), Some(&Value::Null), "{member}");
    }
    let mail = show(MAIL);
    assert_eq!(mail["max_per_second"], 20);
    assert!(mail["next_slot_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{mail}");
    assert_eq!(mail["attempts"][0]["outcome"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_says_how_many_permits_are_in_use() {
    let (folder, known) = folder().await;
    let shown = |rest: &[&str]| destinations(folder.path(), &[&["show", SEARCH], rest].concat());
    assert!(!shown(&[]).out.contains("concurrency"), "it has no limit for all functions");
    let limited = SUBSCRIPTIONS.replace(
        "'https://search.example.com/'",
        "'https://search.example.com/', maxConcurrency: 3",
    );
    deploy(folder.path(), &limited);
    let line = "concurrency    at most 3 requests at once; ";
    assert!(
        shown(&[]).out.contains(&format!("{line}0 permits are in use\n")),
        "{}",
        shown(&[]).out
    );
    known.give_permit(SEARCH, 1, 0).await;
    known.give_permit(SEARCH, 2, 60_000).await;
    assert!(shown(&[]).out.contains(&format!("{line}1 permit is in use\n")), "{}", shown(&[]).out);
    let json = shown(&["--output", "json"]).json();
    assert_eq!((&json["max_concurrency"], &json["permits_in_use"]), (&json!(3), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_says_how_fast_a_destination_recovers_and_why() {
    let (folder, known) = folder().await;
    known.recovers(SEARCH, 7, 1).await;
    let shown = destinations(folder.path(), &["show", SEARCH]).out;
    let line = shown.lines().find(|line| line.starts_with("recovery")).expect("a line");
    assert!(line.contains("at most 4 requests a second since "), "{line}");
    assert!(line.ends_with("7 good responses and 1 failures since then"), "{line}");
    let json = destinations(folder.path(), &["show", SEARCH, "--output", "json"]).json();
    let recovery = &json["recovery"];
    let numbers = ["rate", "good", "failed", "ceiling"].map(|name| recovery[name].as_u64());
    assert_eq!(numbers, [Some(4), Some(7), Some(1), None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_says_the_state_of_the_destination_where_it_is_asked_for() {
    let (folder, _known) = four().await;
    let explain = |rest: &[&str]| {
        let of = ["explain", "-f", "applied.yaml", "--subscription", "shop/orders/billing"];
        Printed::by(&mut lastmile(folder.path(), &[&of[..], rest].concat()))
    };
    assert!(!explain(&[]).out.contains("now: "));
    assert!(explain(&["--output", "json"]).json().get("destination").is_none());
    let shown = explain(&["--config", "."]);
    assert_eq!((shown.code, shown.beside.as_str()), (Some(0), ""), "{}", shown.out);
    let now: Vec<&str> = shown.out.lines().filter(|line| line.starts_with("now: ")).collect();
    assert!(
        now.len() == 2
            && now[0].contains("failing since ")
            && now[0].contains("503 Service Unavailable (Busy)")
    );
    assert!(now[1].contains("no request until "), "{now:?}");
    let json = explain(&["--config", ".", "--output", "json"]).json();
    assert_eq!(json["destination"]["healthy"], false, "{json}");
    assert!(json["destination"]["failing"]["since"].is_string(), "{json}");
    let nowhere = explain(&["--config", "nowhere"]);
    assert_eq!(nowhere.beside, "lastmile: nowhere is no folder\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_found_with_and_without_its_query_and_by_its_key() {
    let (folder, known) = four().await;
    let billing = key(BILLING).to_string();
    for name in [BILLING, "https://billing.example.com/events", &billing, "shop/refunds/billing"] {
        let shown = destinations(folder.path(), &["show", name]);
        assert!(shown.out.contains(&billing), "{name}: {} {}", shown.out, shown.beside);
    }
    // Two that differ in their query only.
    let other = "https://billing.example.com/events?code=other";
    let state = failing(other, "shop/orders/gone");
    known.write_state(other, &state).await;
    let shown = destinations(folder.path(), &["show", "https://billing.example.com/events"]);
    assert_eq!(shown.code, Some(1));
    for part in ["names 2 destinations", &billing, &key(other).to_string(), "shop/orders/gone"] {
        assert!(shown.beside.contains(part), "{part} in {}", shown.beside);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_knows_is_an_error_that_says_what_would_be_right() {
    let (folder, _known) = folder().await;
    let nothing = "and nothing is known of it";
    let unknown = |name: &str| {
        let shown = destinations(folder.path(), &["show", name]);
        assert_eq!((shown.code, shown.out.as_str()), (Some(1), ""), "{name}");
        shown.beside
    };
    let expected = format!(
        "lastmile: there is no subscription shop/orders/bill in ./subscriptions, {nothing}; there are \
         shop/orders/billing, shop/orders/crm, shop/orders/mail, shop/orders/search\n"
    );
    assert_eq!(unknown("shop/orders/bill"), expected);
    assert!(unknown("shop/carts/a").contains("shop/refunds/billing"));
    let expected = format!(
        "lastmile: no subscription in ./subscriptions delivers to https://bill.example.com/, {nothing}; there are \
         https://billing.example.com/events, https://crm.example.com/hooks, https://mail.example.com/in, \
         https://search.example.com/\n"
    );
    assert_eq!(unknown("https://bill.example.com/?code=hush"), expected);
    std::fs::remove_dir_all(folder.path().join("subscriptions")).expect("removed");
    assert!(unknown("shop/orders/billing").contains("nothing is there yet"));
    let wrong = destinations(folder.path(), &["show", "billing"]);
    assert!(wrong.beside.contains("a subscription (namespace/topic/name) or an address"));
    assert_eq!(wrong.code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_destinations_shows_what_the_program_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/destination-down.md");
    let page = timeless(&std::fs::read_to_string(page).expect("there is the page"));
    let (folder, _known) = four().await;
    for verb in [&["list"][..], &["show", "shop/orders/billing"]] {
        let printed = timeless(&destinations(folder.path(), verb).out);
        let indented: String =
            printed.lines().map(|line| format!("   {line}").trim_end().to_owned() + "\n").collect();
        assert!(page.contains(&printed) || page.contains(&indented), "not on the page:\n{printed}");
    }
}
