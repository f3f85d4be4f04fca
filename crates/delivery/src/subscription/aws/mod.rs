//! [`AwsTarget`]: a destination that is an AWS resource, such as a queue or a function.
//!
//! This module is separate from URLs because the ARN determines the service, region, host and
//! signature of a request. `request::aws` composes the request itself.
//!
//! The ARN is literal, so an event cannot choose the resource. Reading a document checks names and
//! types of all parameters. The deployment's [`policy`] decides whether a namespace may use a
//! resource.

mod action;
mod arn;
mod parameters;
mod pattern;
pub mod policy;

use std::borrow::Cow;

use url::Url;

pub use self::action::{AwsAction, AwsService};
use self::arn::Arns;
pub use self::arn::{TargetArn, hosts_of};
use self::parameters::{Parameters, QUALIFIER, check_parameters};
pub(crate) use self::parameters::{rendered, seconds};
pub use self::pattern::covers;
use crate::document::findings::Message;
use crate::document::kind::Word;
use crate::document::reader::Fields;
use crate::document::record::{Optional, Required};
use crate::subscription::templates::Templated;
use crate::template::BodyTemplate;

record! {
    /// An AWS resource that receives the events. Requests are signed with the role that the
    /// parameter `InvokeRoleArn` names.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AwsTarget {
        /// ARN of a queue, topic, event bus, function, state machine or stream. The ARN determines
        /// the region and the host.
        "arn" => pub arn: TargetArn = Required(Arns),
        /// API action of the service: SendMessage (SQS), PutEvents (EventBridge), Invoke (Lambda),
        /// Publish (SNS), StartExecution (Step Functions) or PutRecord (Kinesis, Firehose).
        "action" => pub action: AwsAction = Required(Word(&AwsAction::ALL, AwsAction::as_str)),
        /// Additional members of the request, named as in the service's API reference. Text values
        /// may contain expressions.
        "parameters" => pub parameters: Option<Templated<BodyTemplate>> = Optional(Parameters, "none"),
    }
    check check;
}

fn check(target: &AwsTarget, fields: &Fields<'_>) -> Option<()> {
    let AwsTarget { arn, action, parameters } = target;
    let right = arn.service().action();
    if *action != right {
        let at = fields.own("action").unwrap_or_else(|| fields.parent().clone());
        let message =
            Message::new(format!("{} is not an action of {}", action.as_str(), arn.service()));
        return at.refuse(message.help(format!("action: {}", right.as_str())));
    }
    match (parameters, fields.own("parameters")) {
        (Some(_), Some(at)) => check_parameters(arn, &at),
        (Some(_), None) | (None, _) => Some(()),
    }
}

impl AwsTarget {
    /// Returns the URL of the service in the region of the ARN.
    #[must_use]
    pub fn endpoint(&self) -> &Url {
        self.arn.endpoint()
    }

    /// Returns true if the parameters, or their defaults, may depend on the event.
    pub(crate) fn reads_event(&self) -> bool {
        let has_defaults =
            matches!(self.arn.service(), AwsService::EventBridge | AwsService::Kinesis);
        self.parameters.is_some() || self.arn.is_fifo() || has_defaults
    }

    /// Returns the ARN that policies must allow. For a function it includes the qualifier.
    #[must_use]
    pub fn resource(&self) -> Cow<'_, str> {
        let stated =
            self.parameters.as_ref().and_then(|parameters| parameters.written[QUALIFIER].as_str());
        let arn = self.arn.as_str();
        stated.map_or_else(|| arn.into(), |qualifier| format!("{arn}:{qualifier}").into())
    }

    /// Returns the IAM permission that the role needs on [`Self::resource`], such as
    /// `sqs:SendMessage`.
    #[must_use]
    pub fn iam_action(&self) -> &'static str {
        self.arn.service().iam_action()
    }
}
