//! Causes of failed deliveries. Dead letters whose responses differ only in ids, times and similar
//! values have one cause, in `lastmile deadletters why` and on the page.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::console_server::ConsoleServer;
use crate::sample_letters::{LETTERS, Sample, TestContainer, sample, text};

/// Lower numbers belong to the sample dead letters, which have fixed times.
const NUMBERED_FROM: u32 = 1_000;

/// Returns a container of dead letters whose responses are computed from their numbers.
fn container(count: u32, response: impl Fn(u32) -> String) -> TestContainer {
    let blob = |number| {
        let (key, blob) = sample(NUMBERED_FROM + number, (20, 9), "RESPONSE").blob();
        (key, blob.replace("\"RESPONSE\"", &Value::from(response(number)).to_string()))
    };
    let container = TestContainer::folder();
    container.write(&(1..=count).map(blob).collect::<Vec<_>>());
    container
}

/// Returns a different id for each number, which looks random.
fn id(number: u32) -> String {
    let hash = |factor: u64| u64::from(number + 1).wrapping_mul(factor);
    let (high, low) = (hash(0x9e37_79b9_7f4a_7c15), hash(0xc2b2_ae3d_27d4_eb4f));
    let digits = format!("{high:016x}{low:016x}");
    [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| digits[range].to_owned()).join("-")
}

fn causes(container: &TestContainer) -> Vec<Value> {
    let output = container.run(&["why", "--output", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const CAUSES: u32 = 40;

/// Returns the response of a dead letter: one of forty causes, with values that vary as those of a
/// server.
fn response_of_many(number: u32) -> String {
    let (cause, id, minute, host) = (number % CAUSES, id(number), number % 60, number % 250);
    let subject = ["stock", "price", "address", "customer", "payment"][cause as usize % 5];
    let how = ["is missing", "is locked", "is invalid", "is too old"][cause as usize / 5 % 4];
    let at = format!("2026-11-20T09:{minute:02}:07.{number}Z");
    match cause / 20 {
        0 => format!(
            r#"{{"timestamp":"{at}","status":503,"message":"The {subject} of order {number} {how}: '{id}' on 10.0.0.{host}"}}"#
        ),
        _ => {
            format!("{subject} {how} (id {id}, user u{number}@example.com, {at}, took {number}ms)")
        }
    }
}

#[tokio::test]
async fn thousands_of_dead_letters_with_forty_causes_are_few_groups_of_which_the_first_are_shown() {
    let container = container(2_000, response_of_many);
    let causes = causes(&container);
    assert!((CAUSES as usize..=60).contains(&causes.len()), "{} {causes:#?}", causes.len());
    let letters: u64 = causes.iter().filter_map(|cause| cause["count"].as_u64()).sum();
    assert_eq!(letters, 2_000);
    let keys: BTreeSet<&str> = causes.iter().filter_map(|cause| cause["id"].as_str()).collect();
    assert_eq!(keys.len(), causes.len());

    let table = text(&container.run(&["why"]).stdout);
    let rows = table.lines().filter(|line| line.contains("shop/orders/billing")).count();
    assert_eq!(rows, 30, "{table}");
    let more = format!("… and {} more causes with ", causes.len() - rows);
    assert!(table.contains(&more), "{table}");

    let server = ConsoleServer::start(&container, &[]);
    let page = server.page("/").await;
    assert!(page.contains(&format!("{} rarer causes", causes.len() - rows)), "{page}");
}

#[tokio::test]
async fn the_page_names_statuses_and_shows_a_line_end_of_two_characters_as_one() {
    let container = TestContainer::folder();
    let letter =
        Sample { status: Some(422), outcome: "GenericError", ..sample(1, (20, 9), "a\r\nb") };
    container.write(&[letter.blob(), LETTERS[3].blob()]);
    let server = ConsoleServer::start(&container, &[]);
    let page = server.page("/").await;
    for named in ["422 a", "503 overloaded"] {
        assert!(page.contains(named), "{page}");
    }
    let shown = server.page(&format!("/letters/{}", letter.id())).await;
    assert!(shown.contains("a\nb") && !shown.contains("U+000D"), "{shown}");
}
