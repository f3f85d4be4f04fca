use super::*;
use crate::delivery::Origin;
use crate::delivery::outcome::{Content, Outcome, TransportResult};
use crate::machine::forward::tests::deliveries;
use crate::subscription::dead_letter_format::Response;
use crate::subscription::header::{Header, Value};
use crate::subscription::name::TopicName;
use crate::subscription::profile::Dialect;

const NOW_MS: u64 = 1_795_158_190_000;
const REPLY: &str =
    r#"{"specversion":"1.0","id":"r","source":"/answer","type":"answered","data":{"n": 1.50}}"#;

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    for name in ["n/answers/a", "n/answers/b"] {
        catalogue.add_subscription(subscription(name, None));
    }
    catalogue
}

fn subscription(name: &str, reply: Option<ReplyTo>) -> Subscription {
    let url = "https://example.com/".parse().unwrap();
    Subscription { reply, ..Subscription::new(name.parse().unwrap(), Dialect::Knative, url) }
}

fn to_address() -> Option<ReplyTo> {
    Some(ReplyTo::Address("https://reply.example.com/".parse().unwrap()))
}

fn to_topic() -> Option<ReplyTo> {
    Some(ReplyTo::Topic(TopicName { namespace: "n".to_owned(), topic: "answers".to_owned() }))
}

fn answer(
    status: u16,
    content_type: Option<&str>,
    attributes: &[(&str, &str)],
    body: &[u8],
) -> Exchange {
    let content = Content {
        content_type: content_type.map(ToOwned::to_owned),
        attributes: attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        whole: body.len() <= REPLY_MAX_BYTES,
        ..Content::default()
    };
    let result = TransportResult::Answered { status, retry_after: None, body: body.to_vec() };
    Exchange { content: Some(content), ..Exchange::new(result, NOW_MS - 20, 20) }
}

fn structured(status: u16, body: &str) -> Exchange {
    answer(status, Some("Application/CloudEvents+JSON; charset=utf-8"), &[], body.as_bytes())
}

fn delivery() -> Delivery {
    let event = Event::recall(
        &r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#.into(),
        Input::Auto,
    );
    Delivery::new(event, "n/t/s".parse().unwrap(), Origin { message: "m".to_owned(), index: 0 }, 7)
}

fn followed(delivery: &Delivery, reply: Option<ReplyTo>, exchange: &Exchange) -> Vec<FollowUp> {
    follow_ups(delivery, &subscription("n/t/s", reply), exchange, &catalogue(), NOW_MS)
}

fn reply(follow_ups: &[FollowUp]) -> &Delivery {
    let [FollowUp::Deliver(reply)] = follow_ups else { panic!("{follow_ups:?}") };
    reply
}

fn letter(follow_ups: &[FollowUp]) -> &DeadLetter {
    let [FollowUp::DeadLetter(letter)] = follow_ups else { panic!("{follow_ups:?}") };
    letter
}

#[test]
fn a_reply_waits_for_its_moment_and_one_for_an_impossible_moment_is_unreadable() {
    let at = |moment: &str| {
        let reply = REPLY.replace(r#""id""#, &format!(r#""deliverat":"{moment}","id""#));
        followed(&delivery(), to_address(), &structured(200, &reply))
    };
    let found = at(&crate::time::moment::rfc3339(NOW_MS + 60_000));
    let reply = reply(&found);
    assert_eq!((reply.published_ms, reply.due_ms), (NOW_MS, NOW_MS + 60_000));
    for moment in ["tomorrow", "9999-01-01T00:00:00Z"] {
        let found = at(moment);
        let letter = letter(&found);
        assert_eq!(letter.reason, Reason::MalformedEvent, "{moment}");
        assert!(letter.detail.as_deref().is_some_and(|why| why.contains("deliverat")), "{moment}");
    }
}

#[test]
fn a_reply_goes_on_in_the_trace_of_the_event_it_answers() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01";
    let of_queue = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
    let traced = format!(
        r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","traceparent":"{parent}"}}"#
    );
    let carries = Delivery { event: Event::recall(&traced.into(), Input::Auto), ..delivery() };
    for (event, own_trace, trace) in [
        (carries, Some(of_queue), Some(parent)),
        (delivery(), Some(of_queue), Some(of_queue)),
        (delivery(), None, None),
    ] {
        let answered = Delivery { traceparent: own_trace.map(ToOwned::to_owned), ..event };
        let follow_ups = followed(&answered, to_address(), &structured(200, REPLY));
        assert_eq!(reply(&follow_ups).traceparent.as_deref(), trace);
    }
}

#[test]
fn a_reply_that_a_notice_led_to_says_so_and_no_other_does() {
    let topic = |name: &str| -> TopicName { name.parse().unwrap() };
    let of_topic =
        |from: &str| Delivery { subscription: format!("{from}/s").parse().unwrap(), ..delivery() };
    let of_dead_letter =
        Delivery { via: vec![topic("n/notices"), topic("n/others")], ..of_topic("n/t") };
    let of_other = Delivery { via: vec![topic("n/others")], ..of_topic("n/t") };
    let mut catalogue = catalogue();
    let answer = structured(200, REPLY);
    let via = |answered: &Delivery, to: Option<ReplyTo>, catalogue: &Catalogue| {
        let subscription = subscription("n/t/s", to);
        let follow_ups = follow_ups(answered, &subscription, &answer, catalogue, NOW_MS);
        match &follow_ups[..] {
            [FollowUp::Deliver(reply)] => reply.via.clone(),
            [FollowUp::Publish(message)] => deliveries(message, catalogue)[0].via.clone(),
            _ => panic!("{follow_ups:?}"),
        }
    };
    for to in [to_address(), to_topic()] {
        assert_eq!(via(&of_topic("n/notices"), to, &catalogue), [], "nobody wants notices");
    }
    catalogue.notices_go_to(topic("n/notices"));
    for to in [to_address(), to_topic()] {
        for (answered, expected) in [
            (of_topic("n/notices"), vec![topic("n/notices")]),
            (of_dead_letter.clone(), vec![topic("n/notices")]),
            (of_other.clone(), vec![]),
            (of_topic("n/t"), vec![]),
        ] {
            assert_eq!(via(&answered, to.clone(), &catalogue), expected, "{answered:?}");
        }
    }
    let after_reply = Delivery { via: vec![topic("n/notices")], ..of_topic("n/answers") };
    assert_eq!(via(&after_reply, to_topic(), &catalogue), [topic("n/notices")]);
}

#[test]
fn a_reply_is_a_delivery_of_its_own_to_the_reply_address() {
    let follow_ups = followed(&delivery(), to_address(), &structured(200, REPLY));
    let reply = reply(&follow_ups);
    assert_eq!(&**reply.event.text(), REPLY);
    assert_eq!((&reply.target, reply.hops, reply.attempts), (&DeliveryTarget::Reply, 1, 0));
    assert_eq!((reply.published_ms, reply.due_ms), (NOW_MS, NOW_MS), "its budget is its own");
    assert_eq!(reply.subscription.to_string(), "n/t/s");
    assert_ne!(reply.id, delivery().id);
    assert_eq!(
        follow_ups,
        followed(&delivery(), to_address(), &structured(299, REPLY)),
        "the same answer, the same id"
    );
}

#[test]
fn a_reply_to_a_topic_is_published_once_and_delivered_to_each_of_its_subscriptions() {
    let follow_ups =
        followed(&Delivery { hops: 9, ..delivery() }, to_topic(), &structured(200, REPLY));
    let [FollowUp::Publish(message)] = &follow_ups[..] else { panic!("{follow_ups:?}") };
    assert_eq!(&*message.body, REPLY);
    let deliveries = deliveries(message, &catalogue());
    let [a, b] = &deliveries[..] else { panic!("{deliveries:?}") };
    assert_eq!(a.origin, Origin::made_by(delivery().id, REPLY), "the same for the same answer");
    assert_eq!(
        [&a.subscription, &b.subscription].map(ToString::to_string),
        ["n/answers/a", "n/answers/b"]
    );
    assert_ne!(a.id, b.id);
    assert_eq!((&a.target, a.hops), (&DeliveryTarget::Destination, 10));
}

#[test]
fn an_eleventh_hop_is_a_dead_letter() {
    let tenth = Delivery { hops: 10, ..delivery() };
    for reply in [to_address(), to_topic()] {
        let follow_ups = followed(&tenth, reply, &structured(200, REPLY));
        let letter = letter(&follow_ups);
        assert_eq!((letter.reason.known(), letter.delivery.hops), (Some(Reason::ReplyLoop), 11));
    }
}

#[test]
fn a_reply_is_one_document_in_every_form() {
    const BODY: &str = r#"{"specversion":"1.0","id":"é 1","source":"/s","type":"t"}"#;
    const CLOUD: Option<&str> = Some("application/cloudevents+json");
    let binary = [("specversion", "1.0"), ("id", "r"), ("source", "/answer"), ("type", "a%20b")];
    let encoded =
        [("specversion", "1.0"), ("id", "%C3%A9%201"), ("source", "\"/s\""), ("type", "t")];
    let of_binary = r#"{"specversion":"1.0","type":"a b","source":"/answer","id":"r","datacontenttype":"application/json","data":{"n": 1.50}}"#;
    // No queue takes these characters.
    let odd = REPLY.replace("answered", "a\u{fffe}\u{ffff}b");
    let escaped = REPLY.replace("answered", r"a\ufffe\uffffb");
    for (content_type, attributes, body, expected) in [
        (Some("application/json"), &binary[..], "{\"n\": 1.50}", of_binary),
        (CLOUD, &[], &odd, &*escaped),
        // A body in an event format is the reply; its headers may repeat it, also in their
        // encoding.
        (CLOUD, &REQUIRED, REPLY, REPLY),
        (CLOUD, &encoded, BODY, BODY),
    ] {
        let answer = answer(200, content_type, attributes, body.as_bytes());
        let follow_ups = followed(&delivery(), to_address(), &answer);
        assert_eq!(&**reply(&follow_ups).event.text(), expected);
    }
}

#[test]
fn what_is_no_reply_is_no_error() {
    let plain = answer(200, Some("application/json"), &[], REPLY.as_bytes());
    let unsaid = answer(204, None, &[], b"");
    let no_version = answer(200, Some("application/json"), &[("id", "r")], b"{}");
    for (delivery, reply, exchange) in [
        (delivery(), to_address(), plain),
        (delivery(), to_address(), unsaid),
        (delivery(), to_address(), no_version),
        (delivery(), to_address(), structured(202, REPLY)),
        (delivery(), to_address(), structured(500, REPLY)),
        (delivery(), to_address(), Exchange::new(TransportResult::TimedOut, 0, 1)),
        (delivery(), None, structured(200, REPLY)),
        (
            Delivery { target: DeliveryTarget::Reply, ..delivery() },
            to_address(),
            structured(200, REPLY),
        ),
    ] {
        assert_eq!(followed(&delivery, reply, &exchange), [], "{exchange:?}");
    }
}

#[test]
fn a_reply_that_is_no_event_is_a_dead_letter_with_its_text() {
    const CLOUD: &str = "application/cloudevents+json";
    const BATCH: &str = "application/cloudevents-batch+json";
    const AVRO: &str = "application/cloudevents+avro";
    let latin = REPLY.replace("answered", "\u{e9}").chars().map(|c| c as u8).collect::<Vec<u8>>();
    let batch = format!("[{REPLY}]");
    let with_subject = |subject| [&REQUIRED[..], &[("subject", subject)]].concat();
    let of_attributes = r#"{"specversion":"1.0","type":"answered","source":"/answer","id":"r","subject":"SUBJECT","datacontenttype":"application/json","data":{}}"#;
    let undecoded = |subject: &str| of_attributes.replace("SUBJECT", subject);
    let (no_utf_8, no_escape) = (with_subject("%FF"), with_subject("100%"));
    // Some SDKs read the headers, others the body; the filters of its topic must not see another
    // event than they do.
    let other = [("specversion", "1.0"), ("id", "2"), ("source", "/s"), ("type", "order.read")];
    for (content_type, attributes, body, says, text) in [
        // A queue takes it.
        (CLOUD, &[][..], &b"{\"specversion\":\"1.0\x01"[..], "", "{\"specversion\":\"1.0\u{fffd}"),
        (CLOUD, &[], &latin, "not UTF-8", &*REPLY.replace("answered", "\u{fffd}")),
        (BATCH, &REQUIRED, batch.as_bytes(), "a batch", &batch),
        (BATCH, &[], batch.as_bytes(), "a batch", &batch),
        (
            AVRO,
            &REQUIRED,
            b"Obj",
            "the only supported event format is application/cloudevents+json",
            "Obj",
        ),
        (
            AVRO,
            &[],
            b"Obj",
            "the only supported event format is application/cloudevents+json",
            "Obj",
        ),
        (CLOUD, &other, REPLY.as_bytes(), "ce-… headers", REPLY),
        ("application/json", &no_utf_8, b"{}", "ce-subject", &undecoded("%FF")),
        ("application/json", &no_escape, b"{}", "ce-subject", &undecoded("100%")),
    ] {
        for to in [to_address(), to_topic()] {
            let answer = answer(200, Some(content_type), attributes, body);
            let follow_ups = followed(&delivery(), to, &answer);
            let letter = letter(&follow_ups);
            assert_eq!(letter.reason, Reason::MalformedEvent, "{text}");
            assert!(letter.detail.as_ref().is_some_and(|why| why.contains(says)), "{letter:?}");
            assert_eq!(&**letter.delivery.event.text(), text);
        }
    }
    let readable = answer(200, None, &with_subject("Grüße"), b"{}");
    let follow_ups = followed(&delivery(), to_address(), &readable);
    assert_eq!(reply(&follow_ups).event.members().text("subject").as_deref(), Some("Grüße"));
}

#[test]
fn a_reply_that_is_too_large_is_a_dead_letter_and_never_a_part_of_one() {
    // The maximum length is read. One byte more is too large.
    for (length, reason) in [
        (REPLY_MAX_BYTES, Reason::MalformedEvent),
        (REPLY_MAX_BYTES + 1, Reason::EventTooLargeToResend),
    ] {
        let mut exchange = structured(200, &"x".repeat(length));
        exchange.content.as_mut().unwrap().whole = true;
        let followed = followed(&delivery(), to_address(), &exchange);
        assert_eq!(letter(&followed).reason, reason, "{length}");
    }
    // Cut off, however little of it there is.
    let mut cut = structured(200, REPLY);
    cut.content.as_mut().unwrap().whole = false;
    let cut = followed(&delivery(), to_address(), &cut);
    assert_eq!(letter(&cut).reason, Reason::EventTooLargeToResend);
    let large =
        answer(200, Some("application/cloudevents+json"), &[], &vec![b'x'; REPLY_MAX_BYTES + 1]);
    let large = followed(&delivery(), to_address(), &large);
    let letter = letter(&large);
    assert_eq!(letter.reason, Reason::EventTooLargeToResend);
    assert_eq!(letter.delivery.event, delivery().event);
    assert_eq!(letter.delivery.last_response.as_ref().map(Vec::len), Some(RESPONSE_KEPT_BYTES));
    assert!(letter.detail.as_ref().is_some_and(|detail| detail.contains("524288 bytes")));
    // Its event is the one that was answered: the subscriber is to blame, and is asked again by a
    // replay.
    assert_eq!(letter.delivery.target, DeliveryTarget::Destination);
}

#[test]
fn a_response_that_is_needed_and_not_read_whole_leaves_its_status_in_the_history() {
    let (mut delivery, subscription) = (delivery(), subscription("n/t/s", to_address()));
    let broken = Exchange {
        unread_status: Some(200),
        ..Exchange::new(TransportResult::SocketError, NOW_MS - 20, 20)
    };
    delivery.record(&broken, &subscription);
    let entry = delivery.history.newest().expect("it was recorded");
    assert_eq!((entry.status, entry.outcome.known()), (Some(200), Some(Outcome::SocketError)));
}

#[test]
fn without_a_response_a_dead_letter_has_nothing_of_a_reply_that_is_no_event_or_too_large() {
    let mut subscription = subscription("n/t/s", to_address());
    subscription.dead_letter.response = Response::None;
    let answered = delivery().event;
    let batch = answer(200, Some("application/cloudevents-batch+json"), &[], b"[nobody]");
    let large = "nobody".repeat(REPLY_MAX_BYTES);
    for (answer, event, target, why) in [
        (structured(200, "nobody"), " ", DeliveryTarget::Reply, "cannot be read"),
        (batch, " ", DeliveryTarget::Reply, "a batch"),
        (structured(200, &large), answered.text(), DeliveryTarget::Destination, "524288 bytes"),
    ] {
        let followed = follow_ups(&delivery(), &subscription, &answer, &catalogue(), NOW_MS);
        let letter = letter(&followed);
        assert_eq!((&**letter.delivery.event.text(), &letter.delivery.target), (event, &target));
        assert_eq!(letter.delivery.last_response, None);
        let detail = letter.detail.as_ref().expect("it says why");
        assert!(detail.contains(why) && !detail.contains("nobody"), "{detail}");
        if target == DeliveryTarget::Reply {
            assert!(detail.ends_with(r#"The reply was to the event "1" from "/s""#), "{detail}");
        }
    }
}

#[test]
fn a_reply_that_is_too_large_goes_to_the_sink_of_its_subscription() {
    let large =
        answer(200, Some("application/cloudevents+json"), &[], &vec![b'x'; REPLY_MAX_BYTES + 1]);
    let mut with_sink = subscription("n/t/s", to_address());
    with_sink.dead_letter.sink = Sink::Address("https://sink.example.com/".parse().unwrap());
    let followed = follow_ups(&delivery(), &with_sink, &large, &catalogue(), NOW_MS);
    let [FollowUp::Deliver(next)] = &followed[..] else { panic!("{followed:?}") };
    let DeliveryTarget::Sink(letter) = &next.target else { panic!("{next:?}") };
    assert_eq!(letter.reason, Reason::EventTooLargeToResend);
    assert_eq!((&letter.delivery.event, &letter.sink_error), (&delivery().event, &None));
    with_sink.dead_letter.sink = Sink::None;
    let followed = follow_ups(&delivery(), &with_sink, &large, &catalogue(), NOW_MS);
    assert!(matches!(followed[..], [FollowUp::Drop(_)]), "{followed:?}");
}

#[test]
fn a_dead_letter_about_a_reply_names_the_address_for_replies_and_none_of_the_subscribers_headers() {
    let mut subscription = subscription("n/t/s", to_address());
    let header = Header { name: "x-tenant".into(), value: Value::Static("acme".into()) };
    subscription.destination.headers = vec![header];
    let letter = |target, reason| {
        let delivery = Delivery { target, ..delivery() };
        let letter = DeadLetter::new(delivery, &subscription, reason, NOW_MS);
        (letter.destination.unwrap(), letter.headers.len())
    };
    let failed = Reason::MaxDeliveryAttemptsExceeded;
    assert_eq!(letter(DeliveryTarget::Reply, failed), ("https://reply.example.com/".into(), 0));
    let of_subscriber = ("https://example.com/".to_owned(), 1);
    assert_eq!(letter(DeliveryTarget::Destination, failed), of_subscriber);
    assert_eq!(letter(DeliveryTarget::Reply, Reason::MalformedEvent), of_subscriber);
}

const REQUIRED: [(&str, &str); 4] =
    [("specversion", "1.0"), ("id", "r"), ("source", "/answer"), ("type", "answered")];
