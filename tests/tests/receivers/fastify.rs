//! Fastify, which is strict about bodies, and encoded answers.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use delivery::delivery::outcome::Exchange;
use delivery::ports::SendHttp as _;
use delivery::request::Request;
use delivery::subscription::ReplyTo;
use lastmile_tests::libraries;

use super::events::Mode;
use super::receiver::sources;
use super::{composed_for, sender, subscribed};

/// Started once for each test; ends with its standard input.
struct Fastify {
    endpoint: String,
    _process: Child,
}

fn start() -> Option<Fastify> {
    let folder = libraries::node("the receiver with Fastify")?;
    let mut command = Command::new("node");
    command.arg(sources().join("fastify.mjs")).arg(folder);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("an installed interpreter starts");
    let mut port = String::new();
    let printed = process.stdout.take().expect("standard output is piped");
    BufReader::new(printed).read_line(&mut port).expect("a receiver prints its port");
    assert!(!port.is_empty(), "the receiver with Fastify does not start");
    Some(Fastify { endpoint: format!("http://127.0.0.1:{}", port.trim()), _process: process })
}

fn to(fastify: &Fastify, path: &str, published: &str, mode: Mode) -> Request {
    let mut subscription = subscribed(&fastify.endpoint, mode, &[]);
    subscription.destination.url = format!("{}{path}", fastify.endpoint).parse().expect("a URL");
    let replies = "https://replies.example.com/".parse().expect("a URL");
    subscription.reply = path.starts_with("/reply").then_some(ReplyTo::Address(replies));
    composed_for(&subscription, published)
}

fn text(made: &Exchange) -> (Option<u16>, String) {
    let body = made.answer().map(|(_, body)| String::from_utf8_lossy(body).into_owned());
    (made.status(), body.unwrap_or_else(|| format!("{:?}: {:?}", made.result, made.detail)))
}

#[tokio::test]
async fn an_event_without_data_is_no_empty_json() {
    let Some(fastify) = start() else { return };
    for members in ["", r#","data":null"#, r#","data_base64":null"#, r#","data":{"n":1}"#] {
        let event =
            format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{members}}}"#);
        for mode in Mode::ALL {
            let made = sender().exchange(&to(&fastify, "/in", &event, mode)).await;
            assert_eq!(text(&made), (Some(200), r#"{"type":"t"}"#.to_owned()), "{mode:?} {event}");
        }
    }
}

#[tokio::test]
async fn an_answer_is_read_whatever_it_is_encoded_with() {
    let Some(fastify) = start() else { return };
    let event = r#"{"specversion":"1.0","id":"e-1","source":"/s","type":"t","data":{}}"#;
    for coding in ["gzip", "deflate", "br"] {
        let refuse = format!("/refuse?coding={coding}");
        let made = sender().exchange(&to(&fastify, &refuse, event, Mode::Binary)).await;
        let expected = (Some(422), r#"{"code":"no_such_order"}"#.to_owned());
        assert_eq!(text(&made), expected, "{coding}");
        let reply = format!("/reply?coding={coding}");
        let made = sender().exchange(&to(&fastify, &reply, event, Mode::Binary)).await;
        assert_eq!(text(&made), (Some(200), r#"{"to":"e-1"}"#.to_owned()), "{coding}");
        let content = made.content.expect("it was answered");
        let kind = ("type".to_owned(), "order.answered".to_owned());
        assert!(content.whole && content.attributes.contains(&kind), "{coding}: {content:?}");
    }
}
