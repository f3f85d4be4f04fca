//! The subscriptions of a campaign.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::destinations::Behaviour;

/// A topic with one subscription of each behaviour.
pub(super) const TOPIC: &str = "shop/campaign";
/// A topic whose many subscriptions cause its events to be split on the retry queue.
pub(super) const WIDE: &str = "shop/wide";
/// A topic that no file defines.
pub(super) const UNKNOWN: &str = "shop/nowhere";

const BEHAVIOURS: [(&str, Behaviour); 6] = [
    ("takes", Behaviour::Takes),
    ("slow", Behaviour::IsSlow),
    ("busy", Behaviour::IsBusy),
    ("down", Behaviour::IsDown),
    ("refuses", Behaviour::Refuses),
    ("hangs", Behaviour::Hangs),
];
/// More subscriptions than a record may have in place (`dispatch::REQUESTS_IN_PLACE`).
const WIDE_SUBSCRIPTIONS: usize = 12;

/// The time to live, which ends deliveries to a destination that is always down. On probation each
/// is attempted once, five seconds before.
const TIME_TO_LIVE: &str = "PT5M";

/// Returns the paths of a topic's deliveries, which are also the prefixes of their dead letters'
/// keys.
pub(super) fn paths_of(topic: &str) -> Vec<String> {
    let names = match topic {
        TOPIC => BEHAVIOURS.map(|(name, _)| name.to_owned()).to_vec(),
        WIDE => (0..WIDE_SUBSCRIPTIONS).map(|number| format!("wide-{number}")).collect(),
        _ => vec!["_unknown".to_owned()],
    };
    names.into_iter().map(|name| format!("/{topic}/{name}")).collect()
}

/// Returns the behaviour of the destination at each path.
pub(super) fn behaviours() -> BTreeMap<String, Behaviour> {
    let narrow = paths_of(TOPIC).into_iter().zip(BEHAVIOURS.map(|(_, behaviour)| behaviour));
    let wide = paths_of(WIDE).into_iter().map(|path| (path, Behaviour::Takes));
    narrow.chain(wide).collect()
}

/// Returns the subscriptions as YAML.
pub(super) fn file(destinations: SocketAddr) -> String {
    let document = |path: &String| {
        let names: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let [namespace, topic, name] = names[..] else { panic!("{path} names a subscription") };
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: {namespace}, topic: {topic}, name: {name}}}\n\
             spec:\n  destination: {{url: \"http://{destinations}{path}\", timeout: PT3S}}\n  \
             retry: {{maxAttempts: 4, timeToLive: {TIME_TO_LIVE}, schedule: {{kind: waits, waits: [PT0.5S, PT2S, PT4S]}}}}\n"
        )
    };
    let paths = [paths_of(TOPIC), paths_of(WIDE)].concat();
    paths.iter().map(document).collect::<Vec<_>>().join("---\n")
}
