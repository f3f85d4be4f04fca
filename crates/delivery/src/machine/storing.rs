//! Decides where a dead letter is stored, and where it goes after a permanent refusal.
//!
//! This module is separate from the code that writes, because two functions of the deployment
//! follow the same rules. A dead letter first goes to the container or queue of its subscription.
//! After a permanent refusal, it goes to the deployment's container, with the reason in its blob.
//! After a temporary refusal, it is stored later in the same container or queue.

use crate::delivery::Store;
use crate::subscription::sink::{Container, SinkQueue};

/// The container or queue to which a dead letter is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreTarget<'a> {
    /// The dead letter is written to a container, as a blob.
    Container {
        /// The container of the blob.
        container: &'a Container,
        /// The reason why the dead letter is not stored where its subscription specifies;
        /// `None` if it is stored there. The blob contains the reason.
        sink_error: Option<String>,
    },
    /// The dead letter is sent to this SQS queue outside the deployment, as a message.
    Queue(&'a SinkQueue),
}

/// Returns the target that is tried first. `default` is the deployment's container.
#[must_use]
pub fn first_target<'a>(store: &'a Store, default: &'a Container) -> StoreTarget<'a> {
    match store {
        Store::DefaultContainer => StoreTarget::Container { container: default, sink_error: None },
        Store::Container(own) => StoreTarget::Container { container: own, sink_error: None },
        Store::Queue(own) => StoreTarget::Queue(own),
    }
}

/// Returns the target after a permanent refusal with this problem. Returns `None` if the
/// deployment's container was tried first.
#[must_use]
pub fn fallback<'a>(
    store: &Store,
    default: &'a Container,
    problem: &str,
) -> Option<StoreTarget<'a>> {
    let own = match store {
        Store::DefaultContainer => return None,
        Store::Container(own) if own == default => return None,
        Store::Container(own) => own.to_string(),
        Store::Queue(own) => own.to_string(),
    };
    let sink_error = Some(format!("{own}: {problem}"));
    Some(StoreTarget::Container { container: default, sink_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = "127.0.0.1:4566/000000000000/lost";

    fn container(text: &str) -> Container {
        text.parse().unwrap()
    }

    #[test]
    fn a_dead_letter_is_written_where_it_wants_to_be_stored() {
        let (default, own, queue) = (container("all"), container("own/x"), QUEUE.parse().unwrap());
        let target = |container| StoreTarget::Container { container, sink_error: None };
        for (store, expected) in [
            (Store::DefaultContainer, target(&default)),
            (Store::Container(own.clone()), target(&own)),
            (Store::Container(default.clone()), target(&default)),
            (Store::Queue(QUEUE.parse().unwrap()), StoreTarget::Queue(&queue)),
        ] {
            assert_eq!(first_target(&store, &default), expected);
        }
    }

    #[test]
    fn what_its_own_target_refuses_for_good_goes_to_the_default_container_with_the_reason() {
        let default = container("all");
        for (store, sink_error) in [
            (Store::Container(container("own/x")), "own/x: denied".to_owned()),
            // Another prefix of the same bucket is another container.
            (Store::Container(container("all/x")), "all/x: denied".to_owned()),
            (Store::Queue(QUEUE.parse().unwrap()), format!("{QUEUE}: denied")),
        ] {
            let target =
                StoreTarget::Container { container: &default, sink_error: Some(sink_error) };
            assert_eq!(fallback(&store, &default, "denied"), Some(target));
        }
    }

    #[test]
    fn there_is_nothing_beyond_the_default_container() {
        let default = container("all");
        for store in [Store::DefaultContainer, Store::Container(default.clone())] {
            assert_eq!(fallback(&store, &default, "denied"), None);
        }
    }
}
