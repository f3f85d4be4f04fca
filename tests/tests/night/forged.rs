//! Objects of somebody who can write to the container: they hide no dead letter, and lead no event elsewhere.

use std::collections::BTreeSet;

use lastmile_tests::scripted::{Scripted, answer};

use crate::container::{NightContainer, Stored, text};
use crate::destinations::{BILLING, CRM};

/// Ids of dead letters of this test.
const NEW: [&str; 6] = [
    "00000000-0000-4000-8000-000000000001",
    "00000000-0000-4000-8000-000000000002",
    "00000000-0000-4000-8000-000000000003",
    "00000000-0000-4000-8000-000000000004",
    "00000000-0000-4000-8000-000000000005",
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
];

/// The first dead letter of this subscription.
fn first<'a>(stored: &'a [Stored], subscription: &str) -> &'a Stored {
    stored.iter().find(|letter| letter.is_of(subscription)).expect("it has one")
}

/// Writes blobs that have the ids of two real dead letters inside, and other names. Returns how many dead letters they hold.
fn forge(night: &NightContainer, [a, b]: [&Stored; 2]) -> usize {
    let beside = |name: &str| a.key.replace(&a.id(), name);
    // Copies under other names, which are read before and after the real one.
    night.write(&beside(NEW[0]), &a.text);
    night.write(&beside(NEW[5]), &a.text);
    night.write(&beside("copy"), &a.text);
    let early = "shop/orders/billing/2026/11/20/1/";
    night.write(&format!("{early}{}.json", NEW[1]), &a.text);
    // Another dead letter with the id of the first.
    night.write(&beside(NEW[2]), &b.text.replace(&b.id(), &a.id()));
    // An array of both, which is not a dead letter.
    night.write(&beside(NEW[3]), &format!("[{},{}]", a.text, b.text));
    // One that calls itself a replay of the first, although no job has sent that.
    let replay = format!(r#""replayof":"{}","replayjob":"night","deadletterid":"#, a.id());
    let replay = a.text.replacen(r#""deadletterid":"#, &replay, 1);
    assert_ne!(replay, a.text);
    night.write(&beside(NEW[4]), &replay);
    6
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_and_copied_ids_hide_no_dead_letter_from_lists_and_replays() {
    let night = NightContainer::new();
    let real = night.stored();
    let ids: BTreeSet<String> = real.iter().map(Stored::id).collect();
    let forged = forge(&night, [BILLING, CRM].map(|subscription| first(&real, subscription)));
    let listed: BTreeSet<String> = night.listed(&[]).into_iter().collect();
    assert!(ids.is_subset(&listed), "hidden: {:?}", ids.difference(&listed));
    assert_eq!(listed.len(), ids.len() + forged);

    let server =
        Scripted::start(|_| vec![answer("204 No Content", &[], b"")]).await.expect("a port");
    let (url, all) = (server.endpoint(), listed.len());
    let sent = night.text(&["replay", "--yes", "--to-url", &url, "--name", "everything"]);
    assert!(sent.contains(&format!("{all} of {all} dead letters sent")), "{sent}");
    assert_eq!(server.requests().len(), all);
}

#[test]
fn a_dismissal_of_forged_dead_letters_dismisses_no_real_one() {
    let night = NightContainer::new();
    let real = night.stored();
    let before = night.listed(&[]);
    let victims = [BILLING, CRM].map(|subscription| first(&real, subscription));
    let forged = forge(&night, victims);
    let is_new = |id: &String| !before.contains(id);
    let new: Vec<String> = night.listed(&[]).into_iter().filter(is_new).collect();
    let named: Vec<&str> = new.iter().map(String::as_str).collect();
    let said = night.text(&[&["dismiss", "--note", "forged"], &named[..]].concat());
    assert_eq!(said, format!("{forged} dead letters dismissed\n"));
    assert_eq!(night.listed(&[]), before);
}

/// A plan of a job that was never started, for this dead letter.
fn plan(letter: &Stored, header: &str) -> String {
    let key = &letter.key;
    format!(
        "{{\"v\":1,\"job\":\"evil\",\"at\":\"2026-11-21T07:00:00.0000000Z\",{header},\"letters\":1}}\n\
         {{\"key\":\"{key}\"}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_ledger_sends_nothing_to_its_address_without_confirmation() {
    let night = NightContainer::new();
    let stored = night.stored();
    let letter = first(&stored, BILLING);
    let server =
        Scripted::start(|_| vec![answer("204 No Content", &[], b"")]).await.expect("a port");
    let url = format!("{}/theirs", server.endpoint());
    let queue = "https://sqs.eu-west-1.amazonaws.com/999999999999/theirs";
    for (header, option, address) in [
        (format!(r#""to":"{url}""#), "--to-url", url.as_str()),
        (format!(r#""to":"subscription","queue":"{queue}""#), "--queue-url", queue),
        (format!(r#""to":"topic shop/orders","queue":"{queue}""#), "--queue-url", queue),
    ] {
        night.write("_replays/evil/plan.ndjson", &plan(letter, &header));
        let done = night.run(&["replay", "--yes", "--resume", "evil"]);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{header}: {said}");
        assert!(said.contains(&format!("confirm it with {option} {address}")), "{said}");
        // A chunk is written before it is sent.
        assert!(!night.path().join("_replays/evil/1.ndjson").exists(), "{header}");
    }
    assert!(server.requests().is_empty());
    assert!(night.listed(&[]).contains(&letter.id()), "a plan that was not sent hides it");
}
