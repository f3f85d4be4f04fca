//! What counts as one cause: tables of texts, properties of templates, and groups.

use proptest::prelude::*;

use super::*;
use crate::samples::letter;

#[test]
fn what_varies_in_a_text_has_a_placeholder_and_words_stay() {
    for (text, template) in [
        ("overloaded", "overloaded"),
        // Ids, alone and beside other characters.
        ("request 550e8400-e29b-41d4-a716-446655440000 failed", "request # failed"),
        ("request_id=550e8400e29b41d4a716446655440000;", "request_id=#;"),
        ("trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "trace #"),
        ("commit 7f3a9c, deadbeefcafe, facade and decade", "commit #, #, facade and decade"),
        ("(ref: 01ARZ3NDEKTSV4RRFFQ69G5FAV)", "(ref: #)"),
        ("id Zk3fPq+9/aBc1dEfGhIjKlM0nOpQrS== gone", "id # gone"),
        ("evt_1NG8Du2eZvKYlo2CUI79vXWy is unknown", "# is unknown"),
        ("no such object 0x7ffe12ab", "no such object #"),
        ("token hGtRbQzKXwVnMpLsYcDf", "token #"),
        (
            "javax.net.ssl.SSLHandshakeException in getUserByIdOrName",
            "javax.net.ssl.SSLHandshakeException in getUserByIdOrName",
        ),
        // Numbers.
        (
            "Order #42 of customer1234 costs 1,234.56 EUR, not -5",
            "Order # of customer# costs # EUR, not -#",
        ),
        ("waited 5003ms for 12 of 3/5 attempts", "waited #ms for # of # attempts"),
        ("ORA-00942, E1001 over HTTP2 in S3", "ORA-#, E1001 over HTTP2 in S3"),
        ("20261120070300123456", "#"),
        // Times and dates.
        ("until 2026-11-20T07:03:00.123+01:00!", "until <time>!"),
        ("until 2026-11-20 07:03:00 UTC", "until <time>"),
        ("until Fri, 20 Nov 2026 07:03:00 GMT.", "until <time>."),
        ("at Nov 20, 2026 7:03 AM it may stop", "at <time> it may stop"),
        ("on 11/20/2026 at 07:03", "on <time> at <time>"),
        // Addresses.
        ("connect to 10.0.3.17:8443: refused", "connect to <address>: refused"),
        ("from [2001:db8::1]:443 via 192.168.0.0/24", "from [<address>]:# via <address>/#"),
        ("mail to jane.doe+x@mail.example.com bounced", "mail to <email> bounced"),
        (
            "GET https://api.example.com/v1/orders/42?q=shoes: 7",
            "GET https://api.example.com/v#/orders/#?…: #",
        ),
        ("Cannot POST /hooks/7f3a9c1d/in?token=x", "Cannot POST /hooks/#/in?…"),
        ("/api/OrdersService/GetById", "/api/OrdersService/GetById"),
        // Quoted values.
        ("unknown field \"amount\" in 'order' of `x`", "unknown field \"…\" in '…' of `…`"),
        ("“a” and ‘b’ or «c»", "“…” and ‘…’ or «…»"),
        ("can't find the user's cart", "can't find the user's cart"),
        ("the \"end is missing", "the \"end is missing"),
        (r#"{"reason":"busy","n":[1,2],"ok":false}"#, r#"{"reason":"…","n":[#],"ok":false}"#),
        // Whatever the language.
        ("注文 42 が見つかりません", "注文 # が見つかりません"),
        ("  a \t b ", "a b"),
        ("", ""),
    ] {
        assert_eq!(template::of(text), template, "{text}");
    }
    let long = "no ".repeat(100);
    let template = template::of(&long);
    assert_eq!(template.chars().count(), template::TEMPLATE_MAX_CHARS);
    assert!(template.ends_with('…'));
}

#[test]
fn a_response_says_what_its_json_its_title_or_its_first_line_says() {
    const PROBLEM: &str = r#"{"type":"https://example.com/p","title":"No credit","status":403,
        "detail":"Your balance is 30, that costs 50.","instance":"/account/12345/msgs/abc"}"#;
    let base64 = "base64:eyJtZXNzYWdlIjoicGF5bWVudCBmYWlsZWQg4oI="; // cut within a character
    for (response, line) in [
        (PROBLEM, "No credit · Your balance is #, that costs #."),
        (r#"{"error":{"code":"ORA-00942","message":"no table 7"}}"#, "ORA-00942 · no table #"),
        (r#"{"code":1001,"message":"no order 42","request":"a1"}"#, "1001 · no order #"),
        (r#"{"code":503,"message":"503 Service Unavailable"}"#, "Service Unavailable"),
        (r#"{"error":"busy","message":"busy"}"#, "busy"),
        (r#"{"Message":"denied for \"jane\"\nmore"}"#, "denied for \"…\""),
        (r#"{"error":"550e8400-e29b-41d4-a716-446655440000"}"#, "#"),
        (r#"{"code":"1234567","message":"x"}"#, "# · x"),
        (r#"{"errors":[{"message":"no field 5"},{"message":"other"}]}"#, "no field #"),
        (r#"{"detail":[{"loc":["body",3],"msg":"field required"}]}"#, "field required"),
        (r#"[{"errorCode":"X","message":"gone"}]"#, "gone"),
        (r#""just a text""#, "just a text"),
        // Only the beginning is kept.
        (r#"{"code":"E7","message":"stopped at 5, and th"#, "E7 · stopped at #, and th"),
        (r#"{"message":"stopped","trace":["a","b"#, "stopped"),
        (base64, "payment failed"),
        // Nothing known in it, or no JSON.
        (r#"{"reason":"busy","id":"1"}"#, r#"{"reason":"…","id":"…"}"#),
        (r#"{"status":7}"#, r#"{"status":#}"#),
        ("[warning] 5 left", "[warning] # left"),
        ("42", "#"),
        ("\r\n \r\nsorry\r\nlater", "sorry"),
        ("<!DOCTYPE html>\n<HTML><Title lang=en>502 Bad Gateway</Title>", "Bad Gateway"),
        ("<html><head><title>\n  Down\n</title>", "Down"),
        ("<html><title", "<html><title"),
        ("<html><body><h1>Out of order</h1>", "Out of order"),
        ("<?xml version=\"1.0\"?>\n<Error><Code>Denied</Code></Error>", "Denied"),
        ("<p>", "<p>"),
    ] {
        let status = if line == "Bad Gateway" { 502 } else { 503 };
        let letter = StoredDeadLetter {
            last_response: Some(response.to_owned()),
            status: Some(status),
            ..letter(1)
        };
        assert_eq!(super::line(&letter.failure()).trim(), line, "{response}");
    }
}

#[test]
fn equal_failures_are_one_cause_with_first_and_last_time_and_the_newest_as_example() {
    let mut causes = Causes::default();
    for number in [3, 1, 2] {
        let last_response = Some(format!("overloaded, request {number}"));
        causes.add(&StoredDeadLetter { last_response, ..letter(number) });
    }
    causes.add(&StoredDeadLetter { last_response: Some("\n \nother\n".to_owned()), ..letter(9) });
    causes.add(&StoredDeadLetter {
        last_response: None,
        detail: Some("no trust in 10.0.0.1".to_owned()),
        ..letter(8)
    });
    causes.add(&StoredDeadLetter { last_response: Some(String::new()), ..letter(7) });
    let causes = causes.sorted();
    let lines: Vec<(&str, u64)> =
        causes.iter().map(|cause| (cause.key.line.as_str(), cause.count)).collect();
    assert_eq!(
        lines,
        [
            ("overloaded, request #", 3),
            ("MaxDeliveryAttemptsExceeded", 1),
            ("no trust in <address>", 1),
            ("other", 1)
        ]
    );
    let (first, last) = (decided_ms(&letter(1)), decided_ms(&letter(3)));
    assert_eq!(
        (causes[0].first_ms, causes[0].last_ms, causes[0].example),
        (first, last, letter(3).id)
    );
}

#[test]
fn the_id_of_a_cause_depends_on_each_part_of_its_key_and_on_nothing_else() {
    let key = CauseKey {
        at: FailedAt::Destination,
        destination: Some("https://a.example.com/".to_owned()),
        outcome: None,
        status: Some(503),
        line: "busy".to_owned(),
    };
    // Tools keep it: another value would make every known cause look new.
    assert_eq!(key.id(), "cc5c033de58850a69fd19841406dcf0d");
    for other in [
        CauseKey { at: FailedAt::Sink, ..key.clone() },
        CauseKey { destination: None, ..key.clone() },
        CauseKey { outcome: Some("Busy".to_owned()), ..key.clone() },
        CauseKey { status: None, ..key.clone() },
        CauseKey { line: String::new(), ..key.clone() },
    ] {
        assert_ne!(other.id(), key.id());
    }
}

/// Two values of one kind that a text may have in the same place.
fn two_of_a_kind() -> impl Strategy<Value = (String, String)> {
    fn two(
        strategy: impl Strategy<Value = String> + Clone,
    ) -> impl Strategy<Value = (String, String)> {
        (strategy.clone(), strategy)
    }
    prop_oneof![
        two(any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string())),
        two("[0-9a-f]{8,40}"),
        two("[0-9A-F]{8,40}"),
        two("[0-9]{1,19}"),
        two("[0-9]{1,4}\\.[0-9]{1,6}"),
        two("aB3cD[a-zA-Z0-9]{8,40}"),
        two("aB3[0-9]x[a-zA-Z0-9]{8,20}/9yZ+[0-9]a[0-9]{4}=="),
        two((0_i64..4_000_000_000).prop_map(|s| jiff::Timestamp::new(s, 0).unwrap().to_string())),
        two("[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"),
        two(any::<[u8; 4]>().prop_map(|ip| std::net::Ipv4Addr::from(ip).to_string())),
        two("[a-z]{1,9}(\\.[a-z0-9]{1,9})?@[a-z]{1,9}\\.(com|org)"),
        two("https://api\\.example\\.com/orders/[0-9]{1,9}\\?[a-z]{1,5}=[a-z0-9]{0,9}"),
        two("\"[a-zA-Z ]{0,30}\""),
    ]
}

/// What a text has around them.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(" order ".to_owned()),
        Just(" (request=".to_owned()),
        Just("); no such item: ".to_owned()),
        Just(" can't be found, ".to_owned()),
        Just(" 見つかりません ".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn a_template_is_its_own_template_and_short(text in prop_oneof![
        any::<String>(),
        "[ -~]{0,400}",
        "([0-9a-f]{1,9}|[-#.,:/+@'\"`<>?=& ]|Nov|Mon|GMT|<time>|<email>|https://|…){0,60}",
    ]) {
        let template = template::of(&text);
        prop_assert!(template.chars().count() <= template::TEMPLATE_MAX_CHARS);
        prop_assert_eq!(template::of(&template), template);
    }

    #[test]
    fn texts_that_differ_in_what_varies_only_have_one_template(
        parts in proptest::collection::vec((piece(), two_of_a_kind()), 1..5)
    ) {
        let text = |choose: fn(&(String, String)) -> &String| -> String {
            parts.iter().flat_map(|(piece, two)| [piece.as_str(), choose(two).as_str()]).collect()
        };
        prop_assert_eq!(template::of(&text(|two| &two.0)), template::of(&text(|two| &two.1)));
    }

    #[test]
    fn any_bytes_have_a_line_also_when_they_are_cut(
        start in "(base64:|<title|<|\\{\"message\":\"|\\[|\")?",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cut in 0_usize..220,
    ) {
        let body = format!("{start}{}", String::from_utf8_lossy(&bytes));
        let last_response = Some(body.chars().take(cut).collect());
        let line = super::line(&StoredDeadLetter { last_response, ..letter(1) }.failure());
        prop_assert!(!line.is_empty() && line.chars().count() <= template::TEMPLATE_MAX_CHARS);
    }
}
