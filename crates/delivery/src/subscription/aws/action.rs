//! The AWS services that destinations can use, and the action of each service.

use std::fmt;

words! {
    /// The name of an action in the API reference of its service.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AwsAction {
        /// Sends a message to an SQS queue.
        SendMessage = "SendMessage",
        /// Sends an event to an EventBridge bus.
        PutEvents = "PutEvents",
        /// Invokes a Lambda function.
        Invoke = "Invoke",
        /// Publishes a message to an SNS topic.
        Publish = "Publish",
        /// Starts an execution of a Step Functions state machine.
        StartExecution = "StartExecution",
        /// Puts a record into a Kinesis or Firehose stream.
        PutRecord = "PutRecord",
    }
}

words! {
    /// The name of an AWS service in ARNs, permissions, signatures and host names.
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
    /// Returns the only action that destinations of this service have.
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

    /// Returns the IAM permission that the action requires, such as `sqs:SendMessage`.
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

    /// Returns the syntax of the resource part of the service's ARNs, for messages.
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

    /// Returns the fixed prefix of the resource part of the service's ARNs, such as `function:`. It
    /// is empty for SQS and SNS.
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
