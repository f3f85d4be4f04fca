//! Subscriptions: which events are sent where, how delivery is retried, and what happens to
//! undeliverable events.
//!
//! Documents of every dialect become a [`Subscription`], and the [`catalogue`] holds all of them.
//! [`profile`] has the defaults of each dialect. [`filter`] decides which events match. Retry
//! schedules are in [`crate::waits`]. This module imports events, but not deliveries.

pub mod auth;
pub mod aws;
pub mod batch;
mod bounds;
pub mod catalogue;
pub mod concurrency;
pub mod credentials;
pub mod dead_letter_format;
mod dead_letter_policy;
mod destination;
mod destination_address;
mod destination_credentials;
mod destination_parts;
mod destination_templates;
mod destination_url;
pub mod filter;
pub mod header;
pub mod kinds;
mod method;
pub mod name;
pub mod policy;
pub mod profile;
pub mod public_key;
pub mod secret;
pub mod secret_policy;
mod shown;
mod signature_scope;
pub mod sink;
mod status_set;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod subscription;
pub mod templates;
pub mod tls;
pub mod topic_address;
pub mod topic_settings;

pub use crate::document::record::NoFields;
pub use batch::{BATCH_BYTES, BATCH_EVENTS_MAX, BATCH_KILOBYTE, Batch, OnRefused};
pub use concurrency::Concurrency;
pub use dead_letter_policy::{DeadLetterPolicy, sink_text, sink_uri};
pub use destination::{Destination, SLOW_AFTER_MS};
pub use destination_address::is_arn;
pub use destination_parts::{CloudEventsHandshake, Consent, Disable, Signing, Tls};
pub use destination_url::DestinationUrl;
pub use method::Method;
pub use shown::{addressed, display, host_of, shown};
pub use signature_scope::SignatureScope;
pub use subscription::{DeliverySettings, ReplyTo, Subscription};
