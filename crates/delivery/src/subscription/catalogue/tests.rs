use super::*;
use crate::event::Event;
use crate::event::Input;
use crate::subscription::filter::Filter;
use crate::subscription::name::ALL_NAMES;
use crate::subscription::profile::Dialect;

fn exact(name: &str, value: &str) -> Filter {
    Filter::Exact { name: name.to_owned(), value: value.to_owned() }
}

fn subscription(name: &str, filter: Filter) -> Subscription {
    let name = format!("n/t/{name}").parse().expect("a name");
    let url = "https://example.com/".parse().expect("a URL");
    Subscription { filter, ..Subscription::new(name, Dialect::Native, url) }
}

fn found(catalogue: &Catalogue, event: &str) -> Vec<String> {
    let topic = "n/t".parse().expect("a topic");
    let event = Event::recall(&event.into(), Input::Custom);
    catalogue
        .matching(&topic, &ALL_NAMES, &event, 0)
        .map(|subscription| subscription.name.name.clone())
        .collect()
}

#[test]
fn a_subscription_that_is_added_or_replaced_after_an_event_is_found() {
    let mut catalogue = Catalogue::default();
    catalogue.add_subscription(subscription("b", exact("type", "x")));
    assert_eq!(found(&catalogue, r#"{"type":"x"}"#), ["b"]);
    catalogue.add_subscription(subscription("a", exact("type", "x")));
    assert_eq!(found(&catalogue, r#"{"type":"x"}"#), ["a", "b"]);
    catalogue.add_subscription(subscription("b", exact("type", "y")));
    assert_eq!(found(&catalogue, r#"{"type":"x"}"#), ["a"]);
}

#[test]
fn catalogues_are_equal_whichever_has_seen_an_event() {
    let mut seen = Catalogue::default();
    seen.add_subscription(subscription("a", Filter::EVERYTHING));
    let unseen = seen.clone();
    assert_eq!(found(&seen, "{}"), ["a"]);
    assert_eq!(seen, unseen);
    seen.add_subscription(subscription("b", Filter::EVERYTHING));
    assert_ne!(seen, unseen);
}

#[test]
fn a_short_prefix_is_found_beside_a_longer_one() {
    let prefix = |value: &str| Filter::Prefix { name: "type".into(), value: value.into() };
    let mut catalogue = Catalogue::default();
    // The names determine the order in which the prefixes become known.
    for (name, value) in [("a", "order.paid"), ("b", "order"), ("c", "order.")] {
        catalogue.add_subscription(subscription(name, prefix(value)));
    }
    assert_eq!(found(&catalogue, r#"{"type":"order"}"#), ["b"]);
    assert_eq!(found(&catalogue, r#"{"type":"order.sent"}"#), ["b", "c"]);
    assert_eq!(found(&catalogue, r#"{"type":"order.paid.late"}"#), ["a", "b", "c"]);
}
