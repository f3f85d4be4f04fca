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
        for (number, forged) in [("delivery", DELIVERY), ("publication", PUBLICATION)] {
            let event = event(&format!("forged-{number}"));
            let attributes = [("topic", "shop/forged"), (number, forged.trim()), ("receives", "9")];
            deployment.stack.send(&event, &attributes).await;
        }
        let arrivals = deployment
            .subscriber
            .arrived("/forged", ARRIVAL_LIMIT, |arrivals| arrivals.len() == 2)
            .await;
        let mut ids: Vec<String> = arrivals.iter().map(event_id).collect();
        ids.sort();
        assert_eq!(ids, ["forged-delivery", "forged-publication"]);
        assert!(deployment.stack.dead_letters("shop/forged/").await.is_empty());
        let others = deployment.subscriber.arrivals("/good");
        assert!(others.iter().all(|arrival| !event_id(arrival).starts_with("forged")));
    });
}

#[test]
fn a_forged_dead_letter_is_stored_as_unprocessed_in_the_default_container() {
    on_deployment(|deployment| async move {
        let attributes = [("topic", "shop/lied"), ("deadletter", DEAD_LETTER.trim())];
        deployment.stack.send(&event("lied"), &attributes).await;
        let letters = deployment.dead_letters("shop/lied/", 1).await;
        let [(key, letter)] = letters.as_slice() else { panic!("one dead letter: {letters:#?}") };
        assert!(key.starts_with("shop/lied/_unprocessed/"), "{key}");
        assert_eq!(letter["deadletterProperties"]["deadletterreasoncode"], "ProcessingFailed");
        assert_eq!(letter["event"]["id"], "lied");
    });
}
