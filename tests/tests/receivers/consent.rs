//! Receivers that consent: the validation event as Event Grid's own SDKs read it, and OPTIONS.

use delivery::delivery::outcome::TransportResult;
use delivery::machine::consent::{Answer, Question, Rate, ask, judge};
use delivery::ports::SendHttp as _;
use delivery::request::AttemptContext;
use delivery::subscription::CloudEventsHandshake;
use delivery::subscription::NoFields;
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::Keyring;
use delivery::subscription::{Consent, Subscription};

use super::events::{self, Mode};
use super::receiver::Sdk;
use super::{PUBLISHED_MS, TIMEOUT_MS, composed_for, send, sender, subscribed};

const ORIGIN: &str = "events.example.com";

fn cloud_events(origin: &str) -> Consent {
    Consent::CloudEvents(CloudEventsHandshake { origin: origin.to_owned(), rate: Some(120) })
}

/// The verdict on a receiver's response to a validation request.
async fn handshake(endpoint: &str, consent: &Consent) -> Answer {
    let url = format!("{endpoint}/in").parse().expect("a URL");
    let subscription =
        Subscription::new("shop/orders/billing".parse().expect("a name"), Dialect::Native, url);
    let question =
        Question::new([5, 6, 7, 8], Some("https://me.example.com/1".parse().expect("a URL")));
    let context = AttemptContext {
        keyring: &Keyring::default(),
        now_ms: PUBLISHED_MS,
        timeout_ms: TIMEOUT_MS,
    };
    let request = ask(&subscription, consent, &question, context).expect("a request");
    let exchange = sender().exchange(&request).await;
    assert!(
        matches!(exchange.result, TransportResult::Answered { status: 200, .. }),
        "{exchange:?}"
    );
    judge(consent, &question, &exchange)
}

#[tokio::test]
async fn the_sdks_of_event_grid_read_the_validation_event_and_their_response_is_a_consent() {
    for sdk in Sdk::ALL {
        let Some(endpoint) = sdk.endpoint() else { continue };
        assert_eq!(
            handshake(endpoint, &Consent::EventGrid(NoFields)).await,
            Answer::Granted(Rate::Unlimited),
            "{sdk:?}"
        );
    }
}

#[tokio::test]
async fn receivers_consent_to_options_and_find_the_origin_on_every_delivery_after() {
    for sdk in Sdk::ALL {
        let Some(endpoint) = sdk.endpoint() else { continue };
        let rate = match sdk {
            Sdk::Python => "100",
            Sdk::Node => "*",
        };
        let rate = Rate::parse(rate).expect("a rate");
        assert_eq!(
            handshake(endpoint, &cloud_events(ORIGIN)).await,
            Answer::Granted(rate),
            "{sdk:?}"
        );
        let mut subscription = subscribed(endpoint, Mode::Binary, &["env:SIGNING"]);
        subscription.destination.consent = Some(cloud_events(ORIGIN));
        let report = send(&sender(), &composed_for(&subscription, events::EXACT)).await;
        assert_eq!(report.header("webhook-request-origin"), Some(ORIGIN), "{sdk:?}");
        assert_eq!(
            (report.signature.as_str(), report.event["id"].as_str()),
            ("verified", Some("e-1")),
            "{sdk:?}"
        );
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_know_the_origin_withholds_its_consent() {
    let Some(endpoint) = Sdk::Python.endpoint() else { return };
    assert_eq!(handshake(endpoint, &cloud_events("somebody.example.com")).await, Answer::Pending);
}
