//! The services of targets, and the action that each of them has.

use std::fmt;

words! {
    /// An action of a service, as its API reference names it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AwsAction {
        /// A message to a queue of SQS.
        SendMessage = "SendMessage",
        /// An event to a bus of EventBridge.
        PutEvents = "PutEvents",
        /// A call of a Lambda function.
        Invoke = "Invoke",
        /// A message to a topic of SNS.
        Publish = "Publish",
        /// An execution of a state machine of Step Functions.
        StartExecution = "StartExecution",
        /// A record to a stream of Kinesis or Firehose.
        PutRecord = "PutRecord",
    }
}

words! {
    /// A service, as ARNs, permissions, signatures and hosts name it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AwsService {
        /// Amazon SQS.
        Sqs = "sqs",
        /// Amazon EventBridge.
        EventBridge = "events",
        /// AWS Lambda.
        Lambda = "lambda",
        /// Amazon SNS.
        Sns = "sns",
        /// AWS Step Functions.
        StepFunctions = "states",
        /// Amazon Kinesis Data Streams.
        Kinesis = "kinesis",
        /// Amazon Data Firehose.
        Firehose = "firehose",
    }
}

impl AwsService {
    /// The action of its targets.
    #[must_use]
    pub const fn action(self) -> AwsAction {
        match self {
            Self::Sqs => AwsAction::SendMessage,
            Self::EventBridge => AwsAction::PutEvents,
            Self::Lambda => AwsAction::Invoke,
            Self::Sns => AwsAction::Publish,
            Self::StepFunctions => AwsAction::StartExecution,
            Self::Kinesis | Self::Firehose => AwsAction::PutRecord,
        }
    }

    /// The permission for this action.
    #[must_use]
    pub const fn iam_action(self) -> &'static str {
        match self {
            Self::Sqs => "sqs:SendMessage",
            Self::EventBridge => "events:PutEvents",
            Self::Lambda => "lambda:InvokeFunction",
            Self::Sns => "sns:Publish",
            Self::StepFunctions => "states:StartExecution",
            Self::Kinesis => "kinesis:PutRecord",
            Self::Firehose => "firehose:PutRecord",
        }
    }

    /// The form of the last part of its ARNs, for messages.
    pub(super) const fn resource_form(self) -> &'static str {
        match self {
            Self::Sqs => "QUEUE",
            Self::EventBridge => "event-bus/NAME",
            Self::Lambda => "function:NAME or function:NAME:ALIAS",
            Self::Sns => "TOPIC",
            Self::StepFunctions => "stateMachine:NAME or stateMachine:NAME:ALIAS",
            Self::Kinesis => "stream/NAME",
            Self::Firehose => "deliverystream/NAME",
        }
    }

    /// The beginning of the last part of its ARNs.
    pub(super) const fn resource_prefix(self) -> &'static str {
        match self {
            Self::Sqs | Self::Sns => "",
            Self::EventBridge => "event-bus/",
            Self::Lambda => "function:",
            Self::StepFunctions => "stateMachine:",
            Self::Kinesis => "stream/",
            Self::Firehose => "deliverystream/",
        }
    }
}

impl fmt::Display for AwsService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqs => "SQS",
            Self::EventBridge => "EventBridge",
            Self::Lambda => "Lambda",
            Self::Sns => "SNS",
            Self::StepFunctions => "Step Functions",
            Self::Kinesis => "Kinesis",
            Self::Firehose => "Firehose",
        })
    }
}
