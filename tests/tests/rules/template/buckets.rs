//! The buckets of subscriptions and of dead letters.

use adapters::blobs::tagging;
use delivery::ports::BlobTag;
use delivery::topic_object::TOMBSTONE_TAG;
use serde_json::{Value, json};

use super::{TEMPLATE, resources, statement, tls_only};

const BUCKETS: [&str; 2] = ["ConfigBucket", "DeadLetterBucket"];

/// Both buckets, and their properties.
fn buckets() -> Vec<(&'static str, &'static Value)> {
    let mut buckets = resources("AWS::S3::Bucket");
    buckets.sort_by_key(|(name, _)| *name);
    assert_eq!(buckets.iter().map(|(name, _)| *name).collect::<Vec<_>>(), BUCKETS);
    buckets
}

#[test]
fn a_bucket_keeps_earlier_versions_of_subscriptions_and_dead_letters() {
    for (name, properties) in buckets() {
        assert_eq!(properties["VersioningConfiguration"], json!({"Status": "Enabled"}), "{name}");
    }
}

#[test]
fn the_newest_hundred_versions_of_subscriptions_do_not_expire_and_marks_of_removed_topics_do() {
    let config = buckets().into_iter().find(|(name, _)| *name == "ConfigBucket");
    let (_, config) = config.expect("there is a bucket");
    let rules = config["LifecycleConfiguration"]["Rules"].as_array().expect("it has rules");
    let kept: Vec<&Value> =
        rules.iter().filter(|rule| rule["Prefix"] == "subscriptions/").collect();
    let expected = json!({
        "Id": "EarlierSubscriptions", "Status": "Enabled", "Prefix": "subscriptions/",
        "ExpiredObjectDeleteMarker": true,
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30, "NewerNoncurrentVersions": 100}
    });
    let (tag, value) = TOMBSTONE_TAG.split_once('=').expect("a tag has a value");
    // The object becomes a version, and is the newest one.
    let of_marks = json!({
        "Id": "RemovedTopics", "Status": "Enabled", "Prefix": "subscriptions/",
        "TagFilters": [{"Key": tag, "Value": value}], "ExpirationInDays": 30
    });
    assert_eq!(kept, [&expected, &of_marks]);
    // A rule of another prefix could remove them as well.
    let all = rules.iter().filter_map(|rule| rule["Prefix"].as_str());
    assert!(
        all.clone()
            .all(|prefix| prefix == "subscriptions/" || !"subscriptions/".starts_with(prefix))
    );
    assert_eq!(all.count(), rules.len());
}

#[test]
fn what_was_purged_frees_its_space_after_a_week_whether_or_not_dead_letters_expire() {
    let letters = buckets().into_iter().find(|(name, _)| *name == "DeadLetterBucket");
    let (_, letters) = letters.expect("there is a bucket");
    let rules = letters["LifecycleConfiguration"]["Rules"].as_array().expect("it has rules");
    let expected = json!({
        "Id": "EarlierVersions", "Status": "Enabled", "ExpiredObjectDeleteMarker": true,
        "NoncurrentVersionExpiration": {"NoncurrentDays": 7}
    });
    // Every other rule about versions or markers would have another number of days, or a condition.
    let is_of_versions = |rule: &&Value| {
        let text = rule.to_string();
        text.contains("NoncurrentVersion") || text.contains("ExpiredObjectDeleteMarker")
    };
    assert_eq!(rules.iter().filter(is_of_versions).collect::<Vec<_>>(), [&expected]);
}

#[test]
fn the_tags_of_dead_letters_select_their_lifecycle_rules() {
    let letters = buckets().into_iter().find(|(name, _)| *name == "DeadLetterBucket");
    let (_, letters) = letters.expect("a bucket of dead letters");
    let rules = letters["LifecycleConfiguration"]["Rules"].to_string();
    for tag in [BlobTag::DeadLetter, BlobTag::SetAside] {
        let (key, value) = tagging(tag).split_once('=').expect("a key and a value");
        let selected = json!([{ "Key": key, "Value": value }]).to_string();
        assert!(rules.contains(&format!("\"TagFilters\":{selected}")), "{tag:?}: {rules}");
    }
}

#[test]
fn a_bucket_is_private_and_encrypted() {
    for (name, properties) in buckets() {
        let blocked = properties["PublicAccessBlockConfiguration"].as_object();
        let blocked = blocked.unwrap_or_else(|| panic!("{name} blocks no public access"));
        assert!(
            blocked.len() == 4 && blocked.values().all(|setting| setting == true),
            "{name}: {blocked:?}"
        );
        let owner = json!([{"ObjectOwnership": "BucketOwnerEnforced"}]);
        assert_eq!(properties["OwnershipControls"]["Rules"], owner, "{name}");
        let [rule] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
        else {
            panic!("{name} is not encrypted")
        };
        let encryption = &rule["ServerSideEncryptionByDefault"];
        assert_eq!(encryption["SSEAlgorithm"], json!(["HasKmsKey", "aws:kms", "AES256"]), "{name}");
        let key = json!(["HasKmsKey", "KmsKeyArn", "AWS::NoValue"]);
        assert_eq!(encryption["KMSMasterKeyID"], key, "{name}");
    }
}

#[test]
fn a_bucket_refuses_requests_without_tls() {
    for (name, _) in buckets() {
        let policies = resources("AWS::S3::BucketPolicy");
        let policy = policies.iter().find(|(_, properties)| properties["Bucket"] == name);
        let (_, policy) = policy.unwrap_or_else(|| panic!("{name} has no policy"));
        let objects = [format!("{name}.Arn"), format!("${{{name}.Arn}}/*")];
        let expected = tls_only("s3:*", &json!(objects));
        let found = statement(&policy["PolicyDocument"], "TlsOnly");
        assert_eq!(found, Some((None, &expected)), "{name}");
    }
}

#[test]
fn a_dead_letter_is_written_once_whoever_writes_it() {
    let policies = resources("AWS::S3::BucketPolicy");
    let policy = policies.iter().find(|(_, properties)| properties["Bucket"] == "DeadLetterBucket");
    let (_, policy) = policy.expect("the bucket has a policy");
    let expected = json!({
        "Sid": "FirstWriteWins", "Effect": "Deny", "Principal": "*", "Action": "s3:PutObject",
        "Resource": [
            "${DeadLetterBucket.Arn}/*.json", "${DeadLetterBucket.Arn}/*_replays/*/ends/*.ndjson"
        ],
        // Null is quoted in the template, or YAML would take it for no key at all.
        "Condition": {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
    });
    let found = statement(&policy["PolicyDocument"], "FirstWriteWins");
    assert_eq!(found, Some((None, &expected)));
}

#[test]
fn a_bucket_outlives_the_stack() {
    for name in BUCKETS {
        for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
            assert_eq!(TEMPLATE["Resources"][name][policy], "Retain", "{name} {policy}");
        }
    }
}
