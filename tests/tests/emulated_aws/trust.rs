//! Attributes with our names that a publisher made up, on the deployed application. What Amazon SNS
//! delivers raw, and what an HTTP API passes on, has the same form: a message with attributes.

use super::{ARRIVAL_LIMIT, event, event_id, on_deployment};

/// Says that it is a delivery of the topic shop/orders.
const DELIVERY: &str =
    include_str!("../../../crates/delivery/fixtures/wire/v1/delivery-after-an-answer.json");
/// Says that it is a dead letter, with a container of its own.
const DEAD_LETTER: &str =
    include_str!("../../../crates/delivery/fixtures/wire/v1/deadletter-full.json");
/// Says that it is a published record of another topic.
const PUBLICATION: &str =
    include_str!("../../../crates/delivery/fixtures/wire/v1/publication-full.json");

#[test]
fn forged_attributes_change_nothing_about_an_event() {
    on_deployment(|deployment| async move {
        let forged =
            [("delivery", DELIVERY), ("publication", PUBLICATION), ("deadletter", DEAD_LETTER)];
        for (number, forged) in forged {
            let event = event(&format!("forged-{number}"));
            let attributes = [("topic", "shop/forged"), (number, forged.trim()), ("receives", "9")];
            deployment.stack.send(&event, &attributes).await;
        }
        let arrivals = deployment
            .subscriber
            .arrived("/forged", ARRIVAL_LIMIT, |arrivals| arrivals.len() == 3)
            .await;
        let mut ids: Vec<String> = arrivals.iter().map(event_id).collect();
        ids.sort();
        assert_eq!(ids, ["forged-deadletter", "forged-delivery", "forged-publication"]);
        assert!(deployment.stack.dead_letters("shop/forged/").await.is_empty());
        let others = deployment.subscriber.arrivals("/good");
        assert!(others.iter().all(|arrival| !event_id(arrival).starts_with("forged")));
    });
}
