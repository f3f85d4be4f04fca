//! Finds circles of topics: chains in which events are forwarded from a topic back to the same
//! topic.
//!
//! This module is separate because the search needs all subscriptions. In production, an event in a
//! circle is forwarded a limited number of times, and then becomes a dead letter. A filter may end
//! the circle earlier. Each circle is reported once, at one of its subscriptions.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::findings::Message;
use crate::document::reader::Cursor;
use crate::subscription::catalogue::Catalogue;
use crate::subscription::name::{SubscriptionName, TopicName};

/// For each topic, the topics to which its events are forwarded, each with a subscription that
/// forwards them.
type Ways<'c> = BTreeMap<&'c TopicName, Vec<(TopicName, &'c SubscriptionName)>>;

/// Adds a warning for each circle, at one of its subscriptions.
pub(super) fn report(catalogue: &Catalogue, named_at: &BTreeMap<SubscriptionName, Cursor<'_>>) {
    for circle in circles(&ways(catalogue)) {
        let Some(first) = circle.first() else { continue };
        let topics: Vec<String> = circle.iter().map(|name| name.topic.to_string()).collect();
        let message = format!(
            "events can circulate forever: {} -> {}; after too many hops an event becomes a dead \
             letter (ReplyLoop)",
            topics.join(" -> "),
            first.topic
        );
        if let Some(at) = named_at.get(*first) {
            at.warn(Message::new(message).help("add a filter that accepts each event only once"));
        }
    }
}

fn ways(catalogue: &Catalogue) -> Ways<'_> {
    let mut ways = Ways::new();
    let mut known = BTreeSet::new();
    for subscription in catalogue.subscriptions() {
        let (from, to) = (&subscription.name.topic, subscription.destination.topic());
        if let Some(to) = to.filter(|to| known.insert((from, to.clone()))) {
            ways.entry(from).or_default().push((to, &subscription.name));
        }
    }
    ways
}

/// Returns the subscriptions of each circle, beginning with the first by name. Each edge between
/// two topics is visited once. The search does not recurse, because chains of topics may be long.
fn circles<'c>(ways: &Ways<'c>) -> Vec<Vec<&'c SubscriptionName>> {
    let mut circles = Vec::new();
    // Position of each topic on the current path; `None` once all of its edges were visited.
    let mut places: BTreeMap<&TopicName, Option<usize>> = BTreeMap::new();
    for start in ways.keys() {
        if places.contains_key(*start) {
            continue;
        }
        // The topics of the current path, each with the number of its visited edges.
        let mut path: Vec<(&TopicName, usize)> = vec![(*start, 0)];
        places.insert(*start, Some(0));
        while let Some((topic, walked)) = path.last_mut() {
            let Some((to, _)) = ways.get(*topic).and_then(|ways| ways.get(*walked)) else {
                places.insert(*topic, None);
                path.pop();
                continue;
            };
            *walked += 1;
            match places.get(to) {
                Some(Some(place)) => circles.push(circle(ways, path.get(*place..).unwrap_or(&[]))),
                Some(None) => {}
                None => {
                    places.insert(to, Some(path.len()));
                    path.push((to, 0));
                }
            }
        }
    }
    circles
}

/// Returns the subscriptions that forward events along a path and from its last topic back to its
/// first. The list begins with the first subscription by name.
fn circle<'c>(ways: &Ways<'c>, path: &[(&TopicName, usize)]) -> Vec<&'c SubscriptionName> {
    let way = |(topic, walked): &(&TopicName, usize)| Some(ways.get(*topic)?.get(walked - 1)?.1);
    let mut circle: Vec<&SubscriptionName> = path.iter().filter_map(way).collect();
    let first = circle.iter().enumerate().min_by_key(|(_, name)| **name);
    let first = first.map_or(0, |(place, _)| place);
    circle.rotate_left(first);
    circle
}
