//! The identity of causes: tables of texts, properties of templates, and groups.

use proptest::prelude::*;

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;

use super::*;
use crate::samples::letter;

#[test]
fn ids_numbers_and_times_have_a_placeholder_and_words_stay() {
    assert_templates(&[
        ("overloaded", "overloaded"),
        // Ids, alone and beside other characters.
        ("request 550e8400-e29b-41d4-a716-446655440000 failed", "request <id> failed"),
        ("request_id=550e8400e29b41d4a716446655440000;", "request_id=<id>;"),
        ("trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "trace <id>"),
        ("commit 7f3a9c, deadbeefcafe, facade and decade", "commit <id>, <id>, facade and decade"),
        ("(ref: 01ARZ3NDEKTSV4RRFFQ69G5FAV)", "(ref: <id>)"),
        ("id Zk3fPq+9/aBc1dEfGhIjKlM0nOpQrS== gone", "id <id> gone"),
        ("evt_1NG8Du2eZvKYlo2CUI79vXWy is unknown", "<id> is unknown"),
        ("no such object 0x7ffe12ab", "no such object <id>"),
        ("token hGtRbQzKXwVnMpLsYcDf", "token <id>"),
        (
            "javax.net.ssl.SSLHandshakeException in getUserByIdOrName",
            "javax.net.ssl.SSLHandshakeException in getUserByIdOrName",
        ),
        // Numbers.
        (
            "Order #42 of customer1234 costs 1,234.56 EUR, not -5",
            "Order #<number> of customer<number> costs <number> EUR, not <number>",
        ),
        (
            "waited 5003ms for 12 of 3/5 attempts",
            "waited <duration> for <number> of <number> attempts",
        ),
        ("ORA-00942, E1001 over HTTP2 in S3", "ORA-00942, E1001 over HTTP2 in S3"),
        ("20261120070300123456", "<number>"),
        // Times and dates.
        ("until 2026-11-20T07:03:00.123+01:00!", "until <time>!"),
        ("until 2026-11-20 07:03:00 UTC", "until <time>"),
        ("until Fri, 20 Nov 2026 07:03:00 GMT.", "until <time>."),
        ("at Nov 20, 2026 7:03 AM it may stop", "at <time> it may stop"),
        ("on 11/20/2026 at 07:03", "on <time> at <time>"),
    ]);
}

#[test]
fn addresses_quoted_values_and_durations_have_a_placeholder_and_words_stay() {
    assert_templates(&[
        // Addresses.
        ("connect to 10.0.3.17:8443: refused", "connect to <address>:8443: refused"),
        (
            "from [2001:db8::1]:443 via 192.168.0.0/24",
            "from [<address>]:443 via <address>/<number>",
        ),
        ("mail to jane.doe+x@mail.example.com bounced", "mail to <email> bounced"),
        (
            "GET https://api.example.com/v1/orders/42?q=shoes: 7",
            "GET https://api.example.com/v1/orders/<number>?…: <number>",
        ),
        ("Cannot POST /hooks/7f3a9c1d/in?token=x", "Cannot POST /hooks/<id>/in?…"),
        ("/api/OrdersService/GetById", "/api/OrdersService/GetById"),
        // Quoted values.
        (
            "unknown field \"amount\" in 'order' of `x`",
            "unknown field \"amount\" in 'order' of `x`",
        ),
        ("got \"amount\", not 'a b' or \"7\"", "got <value>, not <value> or <value>"),
        (
            "Duplicate entry 'jane' for key 'users.email'",
            "Duplicate entry <value> for key 'users.email'",
        ),
        ("Key (sku)=(A B) already exists", "Key (sku)=<value> already exists"),
        (
            "after 12 ms, 3.2s, 1m30s and 5 minutes",
            "after <duration>, <duration>, <duration> and <duration>",
        ),
        ("took 3 min 20 s", "took <duration>"),
        ("order 0000d00d, after 2d3h", "order <id>, after <duration>"),
        ("Error 1062 with status code 409 in line2", "Error 1062 with status code 409 in line2"),
        ("postal code 12345", "postal code <number>"),
        ("“a” and ‘b c’ or «7»", "“a” and <value> or <value>"),
        ("can't find the user's cart", "can't find the user's cart"),
        ("the \"end is missing", "the \"end is missing"),
        (
            r#"{"reason":"busy","n":[1,2],"ok":false}"#,
            r#"{"reason":"busy","n":[<number>],"ok":false}"#,
        ),
        // Templates do not depend on the language.
        ("注文 42 が見つかりません", "注文 <number> が見つかりません"),
        ("  a \t b ", "a b"),
        ("", ""),
    ]);
}

#[test]
fn a_quoted_word_is_a_value_where_the_words_beside_it_call_it_one() {
    assert_templates(&[
        ("\"usd\" is not a valid choice.", "<value> is not a valid choice."),
        ("tier: 'gold' is not one of a, b", "tier: <value> is not one of a, b"),
        ("unsupported currency 'usd'", "unsupported currency <value>"),
        ("Invalid value 'abc' for currency", "Invalid value <value> for currency"),
        ("received 'c', expected 'a' | 'b'", "received <value>, expected 'a' | 'b'"),
        ("for input string: \"abc\"", "for input string: <value>"),
        (
            "invalid input syntax for type date: \"abc\"",
            "invalid input syntax for type date: <value>",
        ),
        ("the size 'blue' already exists", "the size <value> already exists"),
        ("an object with code=shoe-1 does not exist", "an object with code=<value> does not exist"),
        // Names stay, even beside such words.
        ("invalid request: 'email' is required", "invalid request: 'email' is required"),
        ("exited with status=failed", "exited with status=failed"),
        ("view \"carts\" already exists", "view \"carts\" already exists"),
        ("unknown field 'usd'", "unknown field 'usd'"),
        ("unknown event type \"order.paid\"", "unknown event type \"order.paid\""),
        ("\"email\" must be a valid email", "\"email\" must be a valid email"),
        ("\"lines[3].sku\" is required", "\"lines[<number>].sku\" is required"),
        ("no such place '/data/4/sku'", "no such place '/data/<number>/sku'"),
        // Rules of a server stay.
        ("must match \"^[A-Z]{3}$\"", "must match \"^[A-Z]{3}$\""),
        ("expects 'application/vnd.api+json'", "expects 'application/vnd.api+json'"),
        ("method 'POST' is not supported", "method 'POST' is not supported"),
    ]);
}

#[test]
fn signs_small_units_and_phone_numbers_vary_and_ports_and_codes_stay() {
    assert_templates(&[
        ("quantity -3 is not 0 or -1.5", "quantity <number> is not <number> or <number>"),
        ("range 1-3 of a-b", "range <number> of a-b"),
        ("after 873µs, 8μs and 2 µs", "after <duration>, <duration> and <duration>"),
        ("to +49 30 1234, 1 234 567", "to <number>, <number>"),
        ("to +15550100 or +4x", "to <number> or <number>"),
        ("to 0049-30-1 or +49-30-1", "to <number> or <number>"),
        ("on 31.12.2026 or 31/12/26", "on <number> or <time>"),
        ("connect ECONNREFUSED 10.0.0.7:5432", "connect ECONNREFUSED <address>:5432"),
        ("read 10.0.0.7:53412->[::1]:6379", "read <address>->[<address>]:6379"),
        ("dial db.internal:5432 of order:1234", "dial db.internal:5432 of order:<number>"),
        ("1015: access denied", "1015: access denied"),
        ("line 1015: access denied", "line <number>: access denied"),
    ]);
}

fn assert_templates(table: &[(&str, &str)]) {
    for (text, template) in table {
        assert_eq!(template::generalize(text), *template, "{text}");
    }
}

#[test]
fn a_long_template_is_cut() {
    let long = "no ".repeat(100);
    let template = template::generalize(&long);
    assert_eq!(template.chars().count(), template::TEMPLATE_MAX_CHARS);
    assert!(template.ends_with('…'));
}

/// A dead letter without a response.
fn failed(reason: &str, outcome: Option<&str>, detail: Option<&str>) -> StoredDeadLetter {
    StoredDeadLetter {
        reason: reason.to_owned(),
        outcome: outcome.map(ToOwned::to_owned),
        status: None,
        last_response: None,
        detail: detail.map(ToOwned::to_owned),
        ..letter(1)
    }
}

/// Outcome and detail of an attempt without a response, and the title of its cause.
const TITLES_WITHOUT_A_RESPONSE: &[(&str, &str, &str)] = &[
    ("SocketError", "tcp connect error: Connection refused (os error 111)", "connection refused"),
    ("SocketError", "tcp connect error: No route to host (os error 113)", "no route to the host"),
    ("SocketError", "Connection reset by peer (os error 104)", "connection reset"),
    ("ResolutionError", "billing.example.com does not resolve", "host name does not resolve"),
    ("TimedOut", "tcp connect error: deadline has elapsed", "connection timed out"),
    (
        "TlsError",
        "invalid peer certificate: certificate expired: verified at time 1795158180 (UNIX time)",
        "certificate expired",
    ),
    ("TlsError", "invalid peer certificate: UnknownIssuer", "certificate from an unknown issuer"),
    (
        "TlsError",
        "certificate not valid for the name of the host",
        "certificate not valid for the host name",
    ),
    (
        "TlsError",
        "invalid peer certificate: Other(7)",
        "certificate not accepted: invalid peer certificate: Other(<number>)",
    ),
    (
        "Blocked",
        "billing.example.com (10.0.0.1) is not a public address and is not listed in \
         ALLOW_PRIVATE_DESTINATIONS",
        "blocked address: not public",
    ),
    (
        "Blocked",
        "AWS_TARGETS does not list arn:aws:sqs:eu-west-1:123456789012:a for the namespace \"shop\"; add it",
        "AWS target not listed in AwsTargets",
    ),
    (
        "Blocked",
        "arn:aws:sqs:eu-west-1:123456789012:a belongs to this deployment, so a subscription \
         cannot use it as its target",
        "AWS target of the deployment itself",
    ),
    (
        "Blocked",
        "arn:a is not in the account of the role (1), but Firehose finds streams by name in \
         the account of the role",
        "Firehose stream of another account",
    ),
    ("Aborted", "env:BILLING_TOKEN is not set", "env:BILLING_TOKEN is not set"),
    ("SocketError", "billing.example.com speaks 7", "<host> speaks <number>"),
];

#[test]
fn a_failure_without_a_response_has_a_title_in_words_and_never_the_host() {
    const CONNECT: &str = "error sending request: client error (Connect): ";
    for (outcome, detail, title) in TITLES_WITHOUT_A_RESPONSE.iter().copied() {
        let detail = format!("{CONNECT}{detail}");
        let attempted = failed("MaxDeliveryAttemptsExceeded", Some(outcome), Some(&detail));
        assert_eq!(describe(&attempted).title.template, title);
        let failing = Some(delivery::delivery::FailingDestination {
            since_ms: 1,
            outcome: outcome.to_owned(),
            status: None,
            detail: Some(detail),
        });
        let put_off =
            StoredDeadLetter { failing, attempts: 0, ..failed("TimeToLiveExceeded", None, None) };
        assert_eq!(cause_id(&put_off), cause_id(&attempted), "{title}");
    }
}

#[test]
fn a_letter_that_was_put_off_has_the_cause_of_an_attempt_with_that_status_and_no_text() {
    let failing = delivery::delivery::FailingDestination {
        since_ms: 1,
        outcome: "Busy".to_owned(),
        status: Some(503),
        detail: None,
    };
    let put_off = StoredDeadLetter {
        failing: Some(failing),
        attempts: 0,
        ..failed("TimeToLiveExceeded", None, None)
    };
    assert_eq!(describe(&put_off).title.template, "503 Service Unavailable");
    for response in
        ["", "Service Unavailable", "<html><h1>503 Service Temporarily Unavailable</h1>"]
    {
        let attempted = StoredDeadLetter { last_response: Some(response.to_owned()), ..letter(1) };
        assert_eq!(cause_id(&put_off), cause_id(&attempted), "{response}");
    }
}

#[test]
fn timeouts_of_any_length_are_one_cause_that_shows_the_newest() {
    let timeout = |duration: &str| {
        let detail = format!("no complete response within {duration}");
        failed("TimeToLiveExceeded", Some("TimedOut"), Some(&detail))
    };
    assert_eq!(describe(&timeout("30 s")).title.template, "no response within 30 s");
    assert_eq!(describe(&timeout("1500 ms")).title.template, "no response within 1500 ms");
    assert_eq!(cause_id(&timeout("30 s")), cause_id(&timeout("1500 ms")));
}

#[test]
fn a_reason_without_an_attempt_is_a_cause_that_names_it() {
    for (reason, detail, title) in [
        ("TopicNotFound", Some("\"shop/ordrs\""), "topic shop/ordrs does not exist"),
        ("TopicNotFound", Some("the message names no topic"), "the message names no topic"),
        ("TopicNotFound", None, "topic shop/orders does not exist"),
        (
            "TopicNotFound",
            Some("there is no topic shop/x, to which the subscription sends events or replies"),
            "topic shop/x does not exist",
        ),
        ("SubscriptionNotFound", None, "subscription shop/orders/billing does not exist"),
        ("MalformedEvent", Some("no id"), "malformed event: no id"),
        ("DestinationDisabled", Some("since 7"), "destination disabled"),
        ("Paused", None, "subscription paused"),
        ("Something else happened.", None, "something else happened"),
        ("", None, "no reason recorded"),
        ("TimeToLiveExceeded", None, "too old before the first attempt"),
        ("UndeliverableDueToHttpGone", None, "410 Gone"),
        ("UndeliverableDueToHttpStatus418", None, "418 I'm a teapot"),
    ] {
        let title = title.to_owned();
        let shown = describe(&failed(reason, None, detail)).title.template;
        assert_eq!(shown.to_lowercase(), title.to_lowercase(), "{reason}");
    }
}

#[test]
fn every_reason_and_every_outcome_has_a_title() {
    for reason in Reason::NAMED {
        for outcome in Outcome::ALL.map(Some).into_iter().chain([None]) {
            let outcome = outcome.map(Outcome::as_str);
            let title = describe(&failed(&reason.to_string(), outcome, None)).title.template;
            assert!(title.len() > 3 && !title.contains("  "), "{reason} {outcome:?}: {title:?}");
        }
    }
}

#[test]
fn a_body_that_is_cut_anywhere_has_the_title_of_the_whole_once_its_message_is_read() {
    let body = r#"{"error":"Bad \u00e9 Request","message":"no field \"total\"","trace":["a","b",{"c":1.5}]}"#;
    let read_from = body.find(",\"trace").unwrap();
    let title = |body: &str| {
        let last_response = Some(body.to_owned());
        describe(&StoredDeadLetter { last_response, ..letter(1) }).title.template
    };
    for cut in (read_from..body.len()).filter(|cut| body.is_char_boundary(*cut)) {
        assert_eq!(title(&body[..cut]), title(body), "{}", &body[..cut]);
    }
}

#[test]
fn a_body_that_is_cut_names_the_errors_that_are_whole_and_any_cut_has_one_cause() {
    let cut_letter =
        |body: &str| StoredDeadLetter { last_response: Some(body.to_owned()), ..letter(1) };
    let list = r#"{"detail":[{"loc":["body","a"],"msg":"missing"},{"loc":["body","b"],"msg":"missing"},{"loc":["body","c"],"msg":"missing"},"#;
    let by_field = r#"{"errors":{"c":["is blank"],"d":["is wrong"],"a":["is too lo"#;
    let texts = r#"{"errors":["Zip is invalid","City is blank","Name is too"#;
    for (body, end, title) in [
        (list, r#""msg":"missing"},{"loc":["body","c"]"#, "503 missing: body.a, body.b and more"),
        (list, r#"missing"},{"loc":["body","c"],"msg":"m"#, "503 missing: body.a, body.b and more"),
        (by_field, "too lo", "503 is blank: c; is wrong: d and more"),
        (texts, "too", "503 City is blank; Zip is invalid and more"),
    ] {
        let body = &body[..body.find(end).unwrap() + end.len()];
        assert_eq!(describe(&cut_letter(body)).title.template, title, "{body}");
    }
    let [short, long] = [90, 115].map(|end| cause_id(&cut_letter(&list[..end])));
    assert_eq!(short, long);
}

#[test]
fn equal_failures_of_any_subscription_are_one_cause_and_its_example_was_attempted_last() {
    let mut causes = Causes::default();
    for number in [3, 1, 2] {
        let last_response = Some(format!("overloaded, request {number}"));
        let name = if number == 2 { "mail" } else { "billing" };
        let subscription = format!("shop/orders/{name}").parse().unwrap();
        let destination = Some(format!("https://{name}.example.com/events"));
        causes.add(&StoredDeadLetter {
            last_response,
            subscription,
            destination,
            published_ms: (number > 1).then_some(u64::from(number)),
            // The order of the last attempts differs from the order in which the dead letters were
            // decided.
            last_attempt_ms: (number < 3).then_some(u64::from(number)),
            ..letter(number)
        });
    }
    causes.add(&StoredDeadLetter { last_response: Some(String::new()), ..letter(7) });
    let causes = causes.sorted(decided_ms(&letter(7)).unwrap());
    let titles: Vec<(&str, u64)> =
        causes.iter().map(|cause| (cause.title.as_str(), cause.count)).collect();
    let expected = [("503 overloaded, request <number>", 3), ("503 Service Unavailable", 1)];
    assert_eq!(titles, expected);
    let first = &causes[0];
    let names: Vec<&str> =
        first.subscriptions.iter().map(|subscription| subscription.name.as_str()).collect();
    assert_eq!(names, ["shop/orders/billing", "shop/orders/mail"]);
    let times = (decided_ms(&letter(1)), decided_ms(&letter(3)), letter(2).id);
    assert_eq!((first.first_ms, first.last_ms, first.example), times);
    assert_eq!(first.oldest_event_ms, Some(2), "one of the three has no time of publication");
    assert!((first.share - 0.75).abs() < f64::EPSILON);
}

#[test]
fn the_party_that_failed_is_a_part_of_the_cause() {
    let reply = StoredDeadLetter { is_reply: true, ..letter(1) };
    assert_eq!(describe(&reply).title.template, "reply: 503 overloaded");
    assert_ne!(cause_id(&reply), cause_id(&letter(1)));
}

#[test]
fn a_beginning_of_an_id_selects_its_causes() {
    let id = cause_id(&letter(1));
    let start: String = id.to_string().chars().take(6).collect();
    let prefix: CausePrefix = start.to_uppercase().parse().unwrap();
    let filter = crate::filter::Filter { causes: vec![prefix], ..Default::default() };
    assert!(filter.matches(&letter(2)) && filter.needs_content());
    assert!(!filter.matches(&StoredDeadLetter { status: Some(500), ..letter(2) }));
    assert_eq!(CauseId::shortened(&[id]), [id.to_string()[..8].to_owned()]);
    for text in ["", "abc", "xyzw", "0123456789abcdef0123456789abcdef0"] {
        assert!(text.parse::<CausePrefix>().unwrap_err().contains("4 to 32"), "{text}");
    }
    // Links and notes store the id. A different length would make every known cause look new.
    assert_eq!(CauseId::new("Busy", Some(503), "x").to_string().len(), 32);
}

/// Generates two values of one kind that can replace each other in a text.
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
        two("\"[a-zA-Z]{1,9} [a-zA-Z ]{0,20}\""),
        two("[0-9]{1,5} ?(ms|s|seconds)"),
    ]
}

/// Generates the text around the values.
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
        "([0-9a-f]{1,9}|[-#.,:/+@'\"`<>?=& ]|Nov|Mon|GMT|<time>|<email>|<id>|<number>|<duration>|ms|min|error|code|value|https://|…){0,60}",
    ]) {
        let template = template::generalize(&text);
        prop_assert!(template.chars().count() <= template::TEMPLATE_MAX_CHARS);
        prop_assert_eq!(template::generalize(&template), template);
    }

    #[test]
    fn texts_that_differ_in_what_varies_only_have_one_template(
        parts in proptest::collection::vec((piece(), two_of_a_kind()), 1..5)
    ) {
        let text = |choose: fn(&(String, String)) -> &String| -> String {
            parts.iter().flat_map(|(piece, two)| [piece.as_str(), choose(two).as_str()]).collect()
        };
        let identity = |text: String| template::identity(&template::generalize(&text));
        prop_assert_eq!(identity(text(|two| &two.0)), identity(text(|two| &two.1)));
    }

    #[test]
    fn any_bytes_have_a_title_also_when_they_are_cut(
        start in "(base64:|<title|<|\\{\"message\":\"|\\[|\")?",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cut in 0_usize..220,
    ) {
        let body = format!("{start}{}", String::from_utf8_lossy(&bytes));
        let last_response = Some(body.chars().take(cut).collect());
        let title = describe(&StoredDeadLetter { last_response, ..letter(1) }).title.template;
        prop_assert!(title.len() > 3 && title.chars().count() <= templated::TITLE_MAX_CHARS);
    }
}
