//! The live page of `lastmile dev`: steps, single events, publishing, subscriptions and
//! destinations.

use std::net::TcpListener;

use serde_json::Value;

use crate::console_live_server::{Dev, PageStream, event_page, subscription};
use crate::console_server::hidden;
use crate::programs::{Running, exchange, lastmile, receiver, save, waiting_receiver};

const EVENT: &str =
    r#"{"specversion":"1.0","id":"order-1","source":"shop/checkout","type":"order.created"}"#;
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nfine";
const BUSY: &str =
    "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nretry-after: 600\r\nconnection: close\r\n\r\n";
const GONE: &str = "HTTP/1.1 404 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\nnone";

fn text<'a>(step: &'a Value, name: &str) -> &'a str {
    step[name].as_str().unwrap_or_default()
}

#[test]
fn an_event_and_its_attempt_are_seen_as_they_happen_with_request_and_response() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = receiver(OK);
    let dev = Dev::start(folder.path(), &subscription("billing", &url, "", ""), &[]);
    let mut stream = dev.stream();
    dev.publish(EVENT);
    let published = stream.step("published");
    assert_eq!((text(&published, "id"), text(&published, "name")), ("order-1", "shop/orders"));
    let attempt = stream.step("attempt 1");
    assert_eq!(text(&attempt, "name"), "shop/orders/billing");
    assert_eq!(text(&attempt, "kind"), "order.created");
    assert_eq!(text(&attempt, "destination"), url);
    assert_eq!((text(&attempt, "outcome"), text(&attempt, "next")), ("200 OK", "delivered"));
    assert_eq!(attempt["event"], published["event"]);

    let live = dev.page("/live");
    for shown in ["order-1", "200 OK", "shop/orders/billing", "script-src 'self'"] {
        assert!(live.contains(shown), "{shown}: {live}");
    }
    let none = dev.page("/live?text=order-1&outcome=ended");
    assert_eq!(none.matches("<tr data-number").count(), 1, "only the template: {none}");
    let event = dev.page(&event_page(&published));
    for shown in ["application/cloudevents+json", "&quot;order-1&quot;", "fine", "text/plain"] {
        assert!(event.contains(shown), "{shown}: {event}");
    }
}

#[test]
fn a_failure_says_why_and_when_the_next_attempt_is_due() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (busy, _received) = receiver(BUSY);
    let both = [
        subscription("busy", &busy, "", ""),
        // No server listens on this port, and no process can bind it meanwhile.
        subscription("closed", "http://127.0.0.1:1/", "", ""),
    ];
    let dev = Dev::start(folder.path(), &both.concat(), &[]);
    let mut stream = dev.stream();
    dev.publish(EVENT);
    let attempts = [stream.step("attempt 1"), stream.step("attempt 1")];
    for attempt in &attempts {
        let due = attempt["due"].as_u64().expect("a retry is due");
        assert!(due > 1_600_000_000_000, "{attempt}");
        assert!(text(attempt, "next").starts_with("retry in "), "{attempt}");
        let outcome = match text(attempt, "name") {
            "shop/orders/busy" => "503 Service Unavailable (Busy)",
            _ => "connection refused (SocketError)",
        };
        assert_eq!(text(attempt, "outcome"), outcome);
    }
    let event = dev.page(&event_page(&attempts[0]));
    assert!(event.contains("retry-after") && event.contains("No response"), "{event}");
}

#[test]
fn a_dead_letter_is_linked_and_replayed_on_the_queues_of_this_run() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = receiver(GONE);
    let dev = Dev::start(folder.path(), &subscription("a", &url, "", ""), &[]);
    let mut stream = dev.stream();
    dev.publish(EVENT);
    let [ended, stored] = stream.steps(["dead-lettered", "dead letter stored"]);
    assert_eq!(text(&ended, "outcome"), "UndeliverableDueToHttpNotFound");
    let link = text(&stored, "letter");
    assert!(dev.page(link).contains("order-1"));
    assert!(dev.page(&event_page(&ended)).contains(link));

    let form = dev.page("/replay");
    let fields =
        ["token", "job", "fingerprint"].map(|name| format!("{name}={}", hidden(&form, name)));
    let body = fields.join("&");
    let headers =
        format!("host: {}\r\ncontent-type: application/x-www-form-urlencoded\r\n", dev.page);
    let started = exchange(&dev.page, "POST /replay", &headers, &body);
    assert!(started.starts_with("HTTP/1.1 303"), "{started}");
    assert_eq!(text(&stream.step("attempt 1"), "id"), "order-1");
}

#[test]
fn foreign_pages_are_refused_and_a_form_needs_its_token() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    let dev = Dev::start(folder.path(), &subscription("a", &url, "", ""), &[]);
    let host = format!("host: {}\r\n", dev.page);
    for path in [
        "/",
        "/live",
        "/letters",
        "/stream",
        "/events/0-1",
        "/publish",
        "/subscriptions",
        "/destinations",
    ] {
        let get = |headers: &str| exchange(&dev.page, &format!("GET {path}"), headers, "");
        for other in ["host: rebound.example.com\r\n", "host: 10.1.2.3\r\n"] {
            assert!(get(other).starts_with("HTTP/1.1 421"), "{path} {other}");
        }
        for site in ["origin: https://evil.example.com\r\n", "sec-fetch-site: cross-site\r\n"] {
            let answer = get(&format!("{host}{site}"));
            assert!(answer.starts_with("HTTP/1.1 403"), "{path} {site}: {answer}");
        }
    }
    let form = format!("{host}content-type: application/x-www-form-urlencoded\r\n");
    for body in ["topic=shop/orders&body={}", "topic=shop/orders&body={}&token=0"] {
        let answer = exchange(&dev.page, "POST /publish", &form, body);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    assert!(received.try_recv().is_err(), "nothing was published");
}

#[test]
fn no_credential_is_shown() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(
        "HTTP/1.1 400 No\r\ncontent-length: 60\r\nconnection: close\r\nx-request-id: r-17\r\n\
         set-cookie: session=of-the-endpoint\r\nx-echo: for hush-hush-env\r\n\r\n\
         you sent hush-hush-env, in-the-file-1 and dXNlcjpwYXNzLXdvcmQ",
    );
    let url = format!("{}?code=query-secret", url.replace("http://", "http://user:pass-word@"));
    let headers = ", headers: [{name: x-hidden, secret: 'env:DEV_PAGE_TOKEN'}, \
                   {name: x-api-key, value: in-the-file-1}, {name: x-team, value: orders}]";
    let variables = [("DEV_PAGE_TOKEN", "hush-hush-env")];
    let dev = Dev::start(folder.path(), &subscription("a", &url, headers, ""), &variables);
    let mut stream = dev.stream();
    dev.publish(EVENT);
    let attempt = stream.step("attempt 1");
    let sent = received.recv().expect("a request");
    assert!(sent.contains("hush-hush-env") && sent.contains("query-secret"), "{sent}");
    let event = event_page(&attempt);
    let form = event.replace("/events/", "/publish?from=");
    let pages = ["/live", &event, "/subscriptions", "/destinations", &form];
    let shown = pages.iter().map(|path| dev.page(path)).chain([attempt.to_string()]);
    let shown: Vec<String> = shown.collect();
    for secret in [
        "hush-hush-env",
        "in-the-file-1",
        "query-secret",
        "pass-word",
        "dXNlcjpwYXNz",
        "of-the-endpoint",
    ] {
        assert!(shown.iter().all(|page| !page.contains(secret)), "{secret}");
    }
    let event = &shown[1];
    for part in ["you sent [secret]", "x-team", "r-17", "set-cookie", "for [secret]"] {
        assert!(event.contains(part), "{part}: {event}");
    }
}

#[test]
fn nothing_that_others_wrote_is_markup_or_hides() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = receiver(
        "HTTP/1.1 500 No\r\ncontent-length: 43\r\ncontent-type: <b>x</b>\r\nconnection: close\r\n\r\n\
         <img src=x onerror=alert(2)><svg/onload=1>\u{1b}",
    );
    let dev = Dev::start(folder.path(), &subscription("a", &url, "", ""), &[]);
    let mut stream = dev.stream();
    dev.publish(
        "{\"specversion\":\"1.0\",\"id\":\"<script>alert(1)</script>\",\"source\":\"s\",\
         \"type\":\"</textarea>\\u202e<svg onload=alert(3)>\"}",
    );
    let step = stream.step("attempt 1");
    assert!(!text(&step, "kind").contains('\u{202e}'), "{step}");
    let event = event_page(&step);
    for path in ["/live", &event, &event.replace("/events/", "/publish?from=")] {
        let page = dev.page(path);
        for markup in [
            "<script>alert",
            "<img",
            "<svg onload",
            "</textarea>\u{fffd}",
            "\u{202e}",
            "\u{1b}",
            "<b>x",
        ] {
            assert!(!page.contains(markup), "{path} {markup}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{path}: {page}");
    }
}

#[test]
fn an_event_is_published_from_the_page_and_one_that_was_seen_is_sent_again() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    let dev = Dev::start(folder.path(), &subscription("a", &url, "", ""), &[]);
    let mut stream = dev.stream();
    let answer = dev.post("/publish", &[("topic", "shop/orders"), ("body", EVENT)]);
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("accepted=1+event"), "{answer}");
    assert!(received.recv().expect("a request").contains("order-1"));
    let first = stream.step("attempt 1");

    let form = dev.page(&format!("/publish?from={}", text(&first, "event")));
    assert!(form.contains("Edit and resend") && form.contains("order-1"), "{form}");
    let changed = EVENT.replace("order-1", "order-2");
    dev.post("/publish", &[("topic", "shop/orders"), ("body", &changed)]);
    assert!(received.recv().expect("a request").contains("order-2"));
    assert_ne!(stream.step("attempt 1")["event"], first["event"]);

    for (topic, body, why) in [
        ("shop/orders", "{", "malformed"),
        ("shop/nothing", EVENT, "the topic shop/nothing does not exist"),
        ("", EVENT, "Choose a topic"),
    ] {
        let answer = dev.post("/publish", &[("topic", topic), ("body", body)]);
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(why), "{answer}");
    }
    assert!(received.try_recv().is_err(), "nothing else was published");
}

#[test]
fn a_preview_says_what_each_subscription_would_get_and_sends_nothing() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    let headers = ", headers: [{name: x-team, value: orders}, {name: x-hidden, secret: 'env:DEV_PAGE_TOKEN'}]";
    let both = [
        subscription("gets", &url, headers, ", filter: {prefix: {type: order.}}"),
        subscription("other", &url, "", ", filter: {prefix: {type: report.}}"),
    ];
    let variables = [("DEV_PAGE_TOKEN", "hush-hush-env")];
    let dev = Dev::start(folder.path(), &both.concat(), &variables);
    let form = |body| [("topic", "shop/orders"), ("body", body), ("action", "preview")];
    let shown = dev.post("/publish", &form(EVENT));
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    for part in [
        "1 of 2 subscriptions",
        "does not match",
        "type is &quot;order.created&quot;",
        "application/cloudevents+json",
        "x-team",
        "order-1",
        "Nothing was sent",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("hush-hush"), "{shown}");
    let malformed = dev.post("/publish", &form("{"));
    assert!(malformed.contains("so it becomes a dead letter"), "{malformed}");
    assert!(received.try_recv().is_err(), "nothing was published");
}

#[test]
fn a_destination_and_a_subscription_have_pages_with_what_happens_next() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = receiver(OK);
    let file =
        subscription("a", &url, ", maxPerSecond: 3", ", filter: {exact: {type: order.created}}");
    let dev = Dev::start(folder.path(), &file, &[]);
    let mut stream = dev.stream();
    dev.publish(EVENT);
    stream.step("attempt 1");
    let list = dev.page("/destinations");
    let path = list.split("href=\"/destinations/").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/destinations/{}", path.expect("a link to the destination"));
    for (page, parts) in [
        (
            dev.page(&path),
            &["100 %", "of 1", "at most 3 requests per second", "destinations show"][..],
        ),
        (
            dev.page("/subscriptions/shop/orders/a"),
            &["deliveries are attempted immediately", "maxPerSecond", "order.created"],
        ),
        (dev.page("/"), &["No open dead letters", "100 %"]),
    ] {
        for part in parts {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let event = EVENT.replace("order.created", "order.paid");
    let page = dev.page("/subscriptions/shop/orders/a");
    assert!(page.contains("<form method=\"post\""), "an event is in no URL: {page}");
    let explained = dev.post("/subscriptions/shop/orders/a", &[("event", &event)]);
    assert!(
        explained.contains("does not match") && explained.contains("order.paid"),
        "{explained}"
    );
    assert!(dev.get("/subscriptions/shop/orders/none").starts_with("HTTP/1.1 404"));
    assert!(dev.get("/destinations/none").starts_with("HTTP/1.1 404"));
}

#[test]
fn an_attempt_is_seen_when_it_begins_and_becomes_its_result() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received, answer) = waiting_receiver(OK);
    let slow = subscription("slow", &url, ", slowAfter: PT10M", "");
    let dev = Dev::start(folder.path(), &slow, &[]);
    let mut stream = dev.stream();
    dev.publish(EVENT);
    let begun = stream.json("begun");
    let said = ["id", "name", "destination", "what", "outcome"].map(|field| text(&begun, field));
    let expected = ["order-1", "shop/orders/slow", &url, "attempt 1", "waiting for a response"];
    assert_eq!(said, expected);
    received.recv().expect("a request");
    let event = event_page(&begun);
    for path in ["/live", "/live?outcome=under-way&text=order-1", &event] {
        let page = dev.page(path);
        assert!(
            page.contains("waiting for a response") && page.contains(">for "),
            "{path}: {page}"
        );
    }
    assert!(!dev.page("/live?outcome=delivered").contains("waiting for a response"));
    // A page that is opened now receives this step too.
    assert_eq!(dev.stream().json("begun"), begun);

    answer.send(()).expect("the receiver waits");
    assert_eq!(stream.json("ended"), begun["number"]);
    let attempt = stream.step("attempt 1");
    assert_eq!((&attempt["event"], text(&attempt, "outcome")), (&begun["event"], "200 OK"));
    for path in ["/live", &event] {
        assert!(!dev.page(path).contains("waiting for a response"), "{path}");
    }
}

#[test]
fn numbers_belong_to_a_run_and_other_addresses_are_answered_by_a_page() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = receiver(OK);
    let dev = Dev::start(folder.path(), &subscription("a", &url, "", ""), &[]);
    let mut stream = dev.stream();
    let run = stream.json("run").as_str().expect("a word").to_owned();
    dev.publish(EVENT);
    let published = stream.step("published");
    stream.step("attempt 1");
    assert_eq!(text(&published, "event"), format!("{run}-1"));
    dev.publish(EVENT);
    stream.steps(["published", "attempt 1"]);
    // A page with earlier steps of this run receives the rest. A page with steps of another run
    // receives everything.
    let number = |after: String| {
        let mut stream = PageStream::open(&dev.page, &format!("/stream?after={after}"));
        stream.json("step")["number"].as_u64()
    };
    assert_eq!((number(format!("{run}-1")), number(format!("{run}-2"))), (Some(2), Some(3)));
    assert_eq!(number("00000000-2".to_owned()), Some(1));

    for (path, title) in [
        ("/events/abc", "No such event"),
        ("/events/1", "No such event"),
        ("/events/%ff", "No such event"),
        ("/events/00000000-1", "An event of an earlier run"),
        (&format!("/events/{run}-999"), "The event is no longer stored"),
        ("/publish?from=abc", "No such event"),
        ("/nothing", "No such page"),
    ] {
        let answer = dev.get(path);
        let is_page = answer.contains("<h1>") && answer.contains("href=\"/live\">Live</a>");
        assert!(answer.starts_with("HTTP/1.1 404") && is_page, "{path}: {answer}");
        assert!(answer.contains(title), "{path}: {answer}");
    }
    let answer = dev.post("/events/abc", &[]);
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("<h1>"), "{answer}");
}

#[test]
fn an_event_is_sent_again_as_it_was_up_to_the_size_that_the_ingress_accepts() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    let dev = Dev::start(folder.path(), &subscription("a", &url, "", ""), &[]);
    let mut stream = dev.stream();
    let mut resend = |event: &str| {
        dev.publish(event);
        let first = stream.step("published");
        let id = text(&first, "event");
        let form = dev.page(&format!("/publish?from={id}"));
        let shown =
            form.split("</textarea>").next().and_then(|rest| rest.split("<textarea").nth(1));
        let shown = shown.and_then(|rest| rest.split_once('>')).expect("a text").1;
        // Converts the text as a browser does: without the first line end, and with CRLF.
        let shown = shown.strip_prefix('\n').expect("a line end").replace("&quot;", "\"");
        let body = shown.replace("\r\n", "\n").replace('\n', "\r\n");
        let form = [("topic", "shop/orders"), ("from", id), ("body", &body)];
        let answer = dev.post("/publish", &form);
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
        let again = stream.step("published");
        assert_eq!(again["outcome"], first["outcome"], "as many bytes");
    };
    let small =
        "{\"specversion\":\"1.0\",\r\n \"id\":\"order-1\", \"source\":\"s\",\"type\":  \"t\"}";
    resend(small);
    for _ in 0..2 {
        assert!(received.recv().expect("a request").ends_with(small));
    }
    // Indented, the event would be three times as large.
    let head = r#"{"specversion":"1.0","id":"large","source":"s","type":"t","data":["#;
    let large = format!("{head}{}1]}}", "1,".repeat((1_032_000 - head.len()) / 2));
    resend(&large);
}

#[test]
fn the_page_publishes_with_the_key_that_others_need_and_shows_it_nowhere() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, received) = receiver(OK);
    let of_key = [("PUBLISH_KEY", "hunter2-of-the-page")];
    let file = subscription("a", &url, "", "");
    let dev = Dev::start_with(folder.path(), &file, &of_key, &["--key", "env:PUBLISH_KEY"]);
    let kind = format!("host: {}\r\ncontent-type: application/cloudevents+json\r\n", dev.ingress);
    let refused = exchange(&dev.ingress, "POST /topics/shop/orders", &kind, EVENT);
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("www-authenticate: Bearer, SharedAccessKey"), "{refused}");
    let answer = dev.post("/publish", &[("topic", "shop/orders"), ("body", EVENT)]);
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    let delivered = received.recv().expect("a request");
    for shown in [delivered, dev.page("/publish"), dev.page("/live")] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn errors_in_the_subscriptions_are_shown_when_the_file_is_saved() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let valid =
        subscription("a", "http://127.0.0.1:1/in", "", ", filter: {prefix: {type: order.}}");
    let dev = Dev::start(folder.path(), &valid, &[]);
    let page = dev.page("/subscriptions");
    for shown in ["1 subscription", "subscriptions.yaml:4:", "order.", "attempts "] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let mut stream = dev.stream();
    assert_eq!(stream.event("problem"), "\"\"");
    let file = folder.path().join("subscriptions.yaml");
    save(&file, &valid.replace("filter:", "filtre:"));
    assert!(stream.event("problem").starts_with("\"1 error in subscriptions.yaml"));
    let page = dev.page("/subscriptions");
    assert!(page.contains("filtre") && page.contains("error: spec"), "{page}");
    assert!(dev.page("/live").contains("1 error in subscriptions.yaml"));
    std::fs::write(&file, "").expect("a file can be written");
    while !dev.page("/subscriptions").contains("the file is empty") {
        stream.event("problem");
    }
}

#[test]
fn a_broken_file_is_no_reason_not_to_start_and_its_error_is_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let broken = subscription("a", "http://127.0.0.1:1/in", "", ", filtre: {}");
    let dev = Dev::start(folder.path(), &broken, &[]);
    for path in ["/", "/destinations"] {
        dev.page(path);
    }
    let page = dev.page("/subscriptions");
    assert!(page.contains("filtre"), "{page}");
}

#[test]
fn destinations_are_listed_with_state_and_limits() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let subscriptions = subscription("a", "http://127.0.0.1:1/in", ", maxPerSecond: 3", "");
    let dev = Dev::start(folder.path(), &subscriptions, &[]);
    let page = dev.page("/destinations");
    for shown in ["1 destination", "healthy", "at most 3 requests per second", "orders/<wbr>a"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[test]
fn the_page_takes_another_port_if_its_own_is_taken_and_can_be_turned_off() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let subscriptions = subscription("a", "http://127.0.0.1:1/in", "", "");
    std::fs::write(folder.path().join("subscriptions.yaml"), subscriptions)
        .expect("a file can be written");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it listens").port().to_string();
    let start = |more: &[&str]| {
        let arguments = [&["dev", "--port", "0", "--aws-port", "0"], more].concat();
        Running::start(lastmile(folder.path(), &arguments))
    };
    let mut dev = start(&["--console-port", &port]);
    let page = dev.line_with("console:");
    assert!(!page.contains(&format!(":{port}/")), "{page}");
    drop(dev);
    let mut dev = start(&["--no-console"]);
    dev.line_with("ready:");
    dev.line_with("subscription from");
    assert!(!dev.seen().contains("console:"), "{}", dev.seen());
}
