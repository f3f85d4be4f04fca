//! Every rule of delivery, and nothing else.
//!
//! An event arrives, an attempt is made or deferred, and its result is judged. Then the delivery
//! ends, waits or becomes a dead letter. All of this is decided here on plain values: without I/O,
//! a clock, randomness, a runtime or AWS. The current time (`now_ms`, milliseconds since 1970-01-01
//! UTC), jitter and the response of a destination are arguments. Production, the simulation and
//! explanations therefore run the same functions.
//!
//! The modules are layers, listed from the lowest to the highest. Each imports only the modules
//! before it:
//!
//! - [`time`]: durations and timestamps. [`waits`]: the length of every wait. [`address`]: the
//!   addresses that requests may go to; no other module uses it.
//! - [`event`]: published events. [`document`]: trees of values with positions, and the declaration
//!   of fields.
//! - [`template`]: bodies, header values, query values and paths that are made from an event.
//! - [`subscription`]: topics and subscriptions, with filters, destinations and retry policies.
//! - [`delivery`](mod@delivery): the state of one event for one subscription, its attempts and its
//!   end.
//! - [`native`]: reads and writes documents in the native form. [`deadletter`]: writes and reads
//!   the bytes of a dead letter. [`wire`]: the message attributes that travel with an event through
//!   the queues.
//! - [`topic_object`]: the object in which a topic is stored.
//! - [`request`]: the HTTP request of one attempt.
//! - [`machine`]: decides what a delivery does next.
//! - [`explain`]: computes the attempts of a delivery, and the subscriptions that get an event.
//!   [`ports`]: the traits that adapters implement.
//! - [`publish`]: HTTP requests that publish events.
//!
//! All arithmetic uses whole milliseconds and saturates.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

/// Declares an enumeration whose variants have names in files, logs and dead letters.
macro_rules! words {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$of_enum])*
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All variants, in the order of their declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the name of the variant.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

#[macro_use]
pub mod document;

pub mod address;
pub mod deadletter;
pub mod delivery;
pub mod event;
pub mod explain;
pub mod machine;
pub mod message;
pub mod native;
pub mod ports;
pub mod publish;
pub mod request;
pub mod shell;
pub mod subscription;
pub mod table;
pub mod template;
pub mod time;
pub mod topic_object;
pub mod waits;
pub mod wire;
