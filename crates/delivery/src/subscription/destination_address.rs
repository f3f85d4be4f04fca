//! [`Address`]: the address of a destination as its document states it, a URL or the ARN of an AWS
//! resource.
//!
//! This module is separate because the address identifies the destination: health, limits and state
//! belong to it. All resources of an AWS service share the host of that service. Therefore the ARN
//! is the address of an AWS resource, as `topic:…` is that of a topic.

use serde_json::Value as Json;
use url::Url;

use super::aws::TargetArn;
use super::destination_url::{DestinationUrl, EventsUrl};
use crate::document::declaration::{Declaration, Shown};
use crate::document::findings::Message;
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Presence, Required};

/// Scheme of addresses that are ARNs.
const SCHEME: &str = "arn";
/// Name of the field that replaces `url` in a destination.
const AWS: &str = "aws";

/// Returns true if the address is the ARN of an AWS resource.
pub fn is_arn(address: &Url) -> bool {
    address.scheme() == SCHEME
}

/// The presence rule of the field `url`: required, unless `aws` replaces it.
pub(super) struct Address(pub(super) Required<EventsUrl>);

impl Presence for Address {
    type Value = DestinationUrl;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<DestinationUrl> {
        let Some(aws) = fields.own(AWS).filter(|at| !at.is_null()) else {
            return self.0.read(fields, name);
        };
        fields.accept(&[name]);
        if let Some(at) = fields.own(name).filter(|at| !at.is_null()) {
            let message = Message::new("set only one of url and aws");
            return at.refuse(message.help("remove one of them"));
        }
        // A missing or invalid ARN is reported when `aws` is read.
        let arn: TargetArn = aws.peek("arn").as_ref().and_then(Cursor::peek_text)?.parse().ok()?;
        Some(DestinationUrl::from(arn.address().clone()))
    }

    fn write(&self, value: &DestinationUrl) -> Option<Json> {
        if is_arn(value) { None } else { self.0.write(value) }
    }

    fn shown(&self, value: &DestinationUrl) -> Option<Json> {
        self.0.shown(value)
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        Declaration { is_required: false, ..self.0.declare(name, about) }
    }

    fn show(&self, path: String, value: &DestinationUrl, shown: &mut Vec<Shown>) {
        self.0.show(path, value, shown);
    }
}
