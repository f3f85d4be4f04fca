//! Copies the settings of `template.yaml` that affect the bill.
//!
//! Separate because a test compares these constants with the template. A change of the template
//! that affects the bill therefore fails the test.

/// The default of the parameter `DispatchMemory`.
pub(super) const DISPATCH_MEMORY_MB: u32 = 256;
/// `BatchSize` of the queues for new events and for waits, without a batch window.
pub(super) const BATCH_SIZE: u32 = 10;
/// `BatchSize` of the queues for new events and for waits, with a batch window.
pub(super) const BATCH_SIZE_WITH_WINDOW: u32 = 100;
/// `MemorySize` of the deadletter function.
pub(super) const DEAD_LETTER_MEMORY_MB: u32 = 128;
/// `BatchSize` of the dead-letter queue.
pub(super) const DEAD_LETTER_BATCH_SIZE: u32 = 10;
/// `ReceiveMessageWaitTimeSeconds` of the queues: the duration of an empty poll.
pub(super) const POLL_S: f64 = 20.0;
/// The default of the parameter `LogRetentionDays`.
pub(super) const LOGS_KEPT_DAYS: f64 = 30.0;
/// The number of alarms that every deployment has.
pub(super) const ALARMS: f64 = 1.0;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operations::queues;

    const TEMPLATE: &str = include_str!("../../../../../template.yaml");

    /// The billed types of resources, each with the number of its resources in every deployment.
    const COUNTED: [(&str, usize); 6] = [
        ("AWS::CloudWatch::Alarm", 1),
        ("AWS::DynamoDB::Table", 1),
        ("AWS::Logs::LogGroup", 2),
        ("AWS::S3::Bucket", 2),
        ("AWS::SQS::Queue", 6),
        ("AWS::Serverless::Function", 2),
    ];
    /// The types of resources that cost nothing by themselves.
    const FREE: [&str; 6] = [
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::Lambda::EventSourceMapping",
        "AWS::Lambda::Permission",
        "AWS::S3::BucketPolicy",
        "AWS::SQS::QueuePolicy",
    ];

    /// Returns the lines of each resource that every deployment has, because it has no condition.
    fn resources() -> Vec<&'static str> {
        let (_, all) = TEMPLATE.split_once("\nResources:\n").expect("it has resources");
        let (all, _) = all.split_once("\nOutputs:\n").expect("it has outputs");
        let all = all.split("\n\n").filter(|block| block.contains("\n    Type: AWS::"));
        all.filter(|block| !block.contains("\n    Condition: ")).collect()
    }

    /// Returns the value of a property, from the lines of a resource or of a parameter.
    fn value<'a>(lines: &'a str, property: &str) -> Option<&'a str> {
        let (_, after) = lines.split_once(&format!("\n    {property}: "))?;
        after.lines().next().map(|value| value.trim_matches('"'))
    }

    fn parameter(name: &str) -> &'static str {
        let (_, after) = TEMPLATE.split_once(&format!("\n  {name}:\n")).expect(name);
        value(after, "Default").expect("a default")
    }

    #[test]
    fn every_resource_of_the_template_is_counted_or_known_to_be_free() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for resource in resources() {
            *counts.entry(value(resource, "Type").expect("a type")).or_default() += 1;
        }
        counts.retain(|of_type, _| !FREE.contains(of_type));
        assert_eq!(counts, COUNTED.into(), "count it in cost/lines.rs, or add it to FREE");
    }

    #[test]
    fn the_settings_are_those_of_the_template() {
        assert_eq!(parameter("DispatchMemory"), DISPATCH_MEMORY_MB.to_string());
        assert_eq!(parameter("LogRetentionDays"), LOGS_KEPT_DAYS.to_string());
        assert!(TEMPLATE.contains("Architectures: [arm64]\n"));
        assert_eq!(parameter("LogLevel"), "info");
        assert_eq!(parameter("MetricsPer"), "");
        let batch =
            format!("BatchSize: !If [HasBatchWindow, {BATCH_SIZE_WITH_WINDOW}, {BATCH_SIZE}]");
        assert_eq!(TEMPLATE.matches(&batch).count(), 2);
        let polls = format!("ReceiveMessageWaitTimeSeconds: {POLL_S}\n");
        assert_eq!(TEMPLATE.matches(&polls).count(), queues::QUEUES.len());
        let resource = |name: &str| {
            let found = resources().into_iter().find(|text| text.contains(&format!("  {name}:\n")));
            found.expect(name)
        };
        let memory = format!("MemorySize: {DEAD_LETTER_MEMORY_MB}\n");
        assert!(resource("DeadLetterFunction").contains(&memory));
        let batch = format!("BatchSize: {DEAD_LETTER_BATCH_SIZE}\n");
        assert!(resource("DeadLetterMapping").contains(&batch));
        let alarms =
            resources().into_iter().filter(|text| text.contains("Type: AWS::CloudWatch::Alarm"));
        assert_eq!(alarms.count().to_string(), ALARMS.to_string());
    }
}
