//! [`AwsPolicy`]: the AWS resources that subscriptions of each namespace may use.
//!
//! This module is separate from subscriptions because the list of allowed resources is a setting of
//! the deployment, `AWS_TARGETS`. Without such a list, the author of a subscription could use every
//! resource that the role can access.
//!
//! A resource is refused unless a pattern in the list covers it. The deployment's own resources are
//! always refused.

use thiserror::Error;

use super::pattern::covers;
use super::{AwsService, AwsTarget};
use crate::document::findings::quoted;

/// Maximum length of a pattern. The time of a comparison is proportional to the length.
const PATTERN_MAX_CHARS: usize = 512;
/// The syntax of the list, for messages.
const FORM: &str = "NAMESPACE=ARN, such as shop=arn:aws:sqs:eu-west-1:123456789012:shop-*; * as the namespace means all";

/// The AWS resources that a deployment allows as destinations, and its own resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsPolicy {
    targets: AwsTargets,
    own: OwnResources,
    account: Option<String>,
}

/// The setting `AWS_TARGETS`: allowed ARN patterns, by namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsTargets(Vec<(String, ArnPattern)>);

/// The setting `OWN_RESOURCE_ARNS`: the deployment's own resources, which are never allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnResources(Vec<ArnPattern>);

/// An ARN that may contain the wildcards of IAM policies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ArnPattern(String);

/// The reason why a subscription may not use an AWS resource.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AwsRefusal {
    /// The resource belongs to the deployment.
    #[error("{0} belongs to this deployment, so a subscription cannot use it as its target")]
    Own(String),
    /// No pattern for the namespace covers the resource.
    #[error(
        "AWS_TARGETS does not list {arn} for the namespace \"{namespace}\"; add {namespace}={arn} \
         to the template parameter AwsTargets"
    )]
    NotListed {
        /// The ARN of the refused resource.
        arn: String,
        /// The namespace of the subscription that names the resource.
        namespace: String,
    },
    /// The resource is a Firehose stream in another account. The Firehose API identifies streams
    /// only by name, so the request would reach a stream in the account of the role.
    #[error(
        "{arn} is not in the account of the role ({account}), but Firehose finds streams by name \
         in the account of the role"
    )]
    OtherAccount {
        /// The ARN of the refused resource.
        arn: String,
        /// The account of the role that signs requests.
        account: String,
    },
}

impl AwsPolicy {
    /// Returns a policy. `role` is the ARN of the role that signs requests; `None` if no role is
    /// configured.
    #[must_use]
    pub fn new(targets: AwsTargets, own: OwnResources, role: Option<&str>) -> Self {
        let account = role.and_then(|arn| arn.split(':').nth(4)).map(ToOwned::to_owned);
        Self { targets, own, account }
    }

    /// Returns the reason why subscriptions of a namespace may not use this resource; `None` if
    /// they may.
    #[must_use]
    pub fn refusal(&self, namespace: &str, target: &AwsTarget) -> Option<AwsRefusal> {
        let arn = &*target.resource();
        if self.own.contains(arn) {
            return Some(AwsRefusal::Own(arn.to_owned()));
        }
        if !self.targets.permits(namespace, arn) {
            let (arn, namespace) = (arn.to_owned(), namespace.to_owned());
            return Some(AwsRefusal::NotListed { arn, namespace });
        }
        let other = self.account.as_ref().filter(|account| *account != target.arn.account());
        other.filter(|_| target.arn.service() == AwsService::Firehose).map(|account| {
            AwsRefusal::OtherAccount { arn: arn.to_owned(), account: account.clone() }
        })
    }
}

impl AwsTargets {
    /// Parses `AWS_TARGETS`: items of the form `NAMESPACE=ARN`, separated by commas.
    ///
    /// # Errors
    /// A message about the first invalid item.
    pub fn parse(text: &str) -> Result<Self, String> {
        let read = entries(text).map(|entry| {
            Self::entry(entry).ok_or_else(|| format!("{} is not {FORM}", quoted(entry)))
        });
        read.collect::<Result<Vec<_>, String>>().map(Self)
    }

    fn entry(text: &str) -> Option<(String, ArnPattern)> {
        let (namespace, arn) = text.split_once('=')?;
        let namespace = namespace.trim();
        let is_right = namespace == "*" || !(namespace.is_empty() || namespace.contains('*'));
        is_right.then_some((namespace.to_owned(), ArnPattern::parse(arn.trim())?))
    }

    /// Returns true if subscriptions of this namespace may use the resource with this ARN.
    #[must_use]
    pub fn permits(&self, namespace: &str, arn: &str) -> bool {
        let of_namespace =
            self.0.iter().filter(|(allowed, _)| allowed == "*" || allowed == namespace);
        of_namespace.into_iter().any(|(_, pattern)| pattern.covers(arn))
    }
}

impl OwnResources {
    /// Parses `OWN_RESOURCE_ARNS`: ARNs that may contain wildcards, separated by commas.
    ///
    /// # Errors
    /// A message about the first item that is not an ARN.
    pub fn parse(text: &str) -> Result<Self, String> {
        let patterns = entries(text).map(|entry| {
            ArnPattern::parse(entry).ok_or_else(|| format!("{} is not an ARN", quoted(entry)))
        });
        patterns.collect::<Result<Vec<_>, String>>().map(Self)
    }

    /// Lists the ARNs, which may contain the wildcards of IAM policies.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pattern| pattern.0.as_str())
    }

    /// Adds the function with this name and all its qualifiers. The partition, region and account
    /// come from the first ARN that states a region and an account. Without such an ARN, nothing is
    /// added.
    #[must_use]
    pub fn with_function(mut self, name: &str) -> Self {
        let located = self.0.iter().find_map(|ArnPattern(arn)| {
            let mut parts = arn.splitn(6, ':').skip(1);
            let (partition, _) = (parts.next()?, parts.next()?);
            let (region, account) = (parts.next()?, parts.next()?);
            let is_located = !region.is_empty() && !account.is_empty();
            is_located.then(|| format!("arn:{partition}:lambda:{region}:{account}:function:{name}"))
        });
        if let Some(arn) = located {
            self.0.extend([ArnPattern(format!("{arn}:*")), ArnPattern(arn)]);
        }
        self
    }

    /// Returns true if a pattern covers the ARN. An ARN of a function with an alias or version is
    /// also contained if a pattern covers the ARN without this qualifier.
    #[must_use]
    pub fn contains(&self, arn: &str) -> bool {
        // In the ARN of a function, the sixth colon precedes the name, and the seventh precedes the
        // alias or version.
        let unqualified = arn.match_indices(':').nth(6).map(|(at, _)| arn.split_at(at).0);
        let spellings = [Some(arn), unqualified];
        self.0.iter().any(|own| spellings.iter().flatten().any(|arn| own.covers(arn)))
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

impl ArnPattern {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let is_arn = matches!(parts[..], ["arn", _, _, _, _, resource] if !resource.is_empty());
        (is_arn && text.chars().count() <= PATTERN_MAX_CHARS).then(|| Self(text.to_owned()))
    }

    /// Returns true if the pattern covers the ARN. Segments are compared one by one, so that a `*`
    /// for the region cannot match further segments.
    fn covers(&self, arn: &str) -> bool {
        let mut parts = self.0.splitn(6, ':').zip(arn.splitn(6, ':'));
        parts.all(|(pattern, part)| covers(pattern, &[part]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::subscription::aws::AwsAction;
    use crate::subscription::templates::Templated;

    const ACCOUNT: &str = "123456789012";

    fn target(arn: &str) -> AwsTarget {
        AwsTarget { arn: arn.parse().unwrap(), action: AwsAction::SendMessage, parameters: None }
    }

    fn policy(targets: &str) -> AwsPolicy {
        let own = "arn:aws:sqs:eu-west-1:123456789012:stack-EventsQueue-1, arn:aws:lambda:eu-west-1:123456789012:function:stack-*";
        let (targets, own) =
            (AwsTargets::parse(targets).unwrap(), OwnResources::parse(own).unwrap());
        AwsPolicy::new(targets, own, Some("arn:aws:iam::123456789012:role/invoke"))
    }

    fn refusal(policy: &AwsPolicy, namespace: &str, resource: &str) -> Option<String> {
        let refusal = policy.refusal(namespace, &target(&format!("arn:aws:{resource}")));
        refusal.map(|refusal| refusal.to_string())
    }

    #[test]
    fn a_target_is_allowed_by_a_pattern_of_its_namespace_or_of_all() {
        let policy = policy(
            "shop=arn:aws:sqs:eu-west-1:123456789012:shop-*, *=arn:aws:sns:*:123456789012:all-?, any=arn:aws:lambda:*:*:function:bill",
        );
        for (namespace, resource, is_allowed) in [
            ("shop", "sqs:eu-west-1:123456789012:shop-orders", true),
            ("shop", "sqs:eu-west-1:123456789012:shop-", true),
            ("shop", "sqs:eu-west-1:123456789012:other", false),
            ("shop", "sqs:eu-west-2:123456789012:shop-orders", false),
            ("shop", "sqs:eu-west-1:999999999999:shop-orders", false),
            ("shops", "sqs:eu-west-1:123456789012:shop-orders", false),
            ("other", "sns:us-east-1:123456789012:all-1", true),
            ("other", "sns:us-east-1:123456789012:all-12", false),
            ("any", "lambda:eu-west-1:999999999999:function:bill", true),
            // The function has the name `function` and the alias `bill`.
            ("any", "lambda:eu-west-1:999999999999:function:function:bill", false),
        ] {
            let refused = refusal(&policy, namespace, resource);
            assert_eq!(refused.is_none(), is_allowed, "{namespace} {resource}: {refused:?}");
        }
        let refused = refusal(&policy, "billing", "sqs:eu-west-1:123456789012:shop-a").unwrap();
        assert!(refused.contains("AWS_TARGETS does not list arn:aws:sqs:eu-west-1:123456789012:shop-a for the namespace \"billing\""), "{refused}");
    }

    #[test]
    fn a_qualifier_is_listed_like_an_alias_in_the_arn() {
        let policy = policy("shop=arn:aws:lambda:eu-west-1:123456789012:function:bill");
        let mut target = target("arn:aws:lambda:eu-west-1:123456789012:function:bill");
        assert_eq!(policy.refusal("shop", &target), None);
        target.parameters =
            Some(Templated::body(json!({ "Qualifier": "live" }), "parameters").unwrap());
        let refused = policy.refusal("shop", &target).unwrap().to_string();
        assert!(
            refused
                .contains("does not list arn:aws:lambda:eu-west-1:123456789012:function:bill:live")
        );
    }

    #[test]
    fn own_resources_are_refused_whatever_is_listed() {
        let policy = policy("*=arn:aws:*:*:*:*");
        for resource in [
            "sqs:eu-west-1:123456789012:stack-EventsQueue-1",
            "lambda:eu-west-1:123456789012:function:stack-dispatch",
            "lambda:eu-west-1:123456789012:function:stack-dispatch:live",
        ] {
            let refused = refusal(&policy, "shop", resource).expect(resource);
            assert!(refused.contains("belongs to this deployment"), "{refused}");
        }
        assert_eq!(
            refusal(&policy, "shop", "sqs:eu-west-1:123456789012:stack-EventsQueue-12"),
            None
        );
    }

    #[test]
    fn an_alias_of_an_own_function_is_refused_where_its_arn_is_listed_without_wildcards() {
        let own =
            OwnResources::parse("arn:aws:lambda:eu-west-1:123456789012:function:own").unwrap();
        for (arn, is_own) in
            [("own", true), ("own:live", true), ("own:live:1", true), ("owner", false)]
        {
            let arn = format!("arn:aws:lambda:eu-west-1:{ACCOUNT}:function:{arn}");
            assert_eq!(own.contains(&arn), is_own, "{arn}");
        }
    }

    #[test]
    fn the_function_itself_is_own_with_its_aliases_but_no_function_whose_name_begins_like_it() {
        let queue = format!("arn:aws:sqs:eu-west-1:{ACCOUNT}:events");
        let own = OwnResources::parse(&queue).unwrap().with_function("d");
        for (name, is_own) in [("d", true), ("d:live", true), ("d2", false), ("d2:live", false)] {
            let arn = format!("arn:aws:lambda:eu-west-1:{ACCOUNT}:function:{name}");
            assert_eq!(own.contains(&arn), is_own, "{arn}");
        }
    }

    #[test]
    fn a_stream_of_firehose_has_to_be_in_the_account_of_the_role() {
        let policy = policy("*=arn:aws:*:*:*:*");
        let refused = refusal(&policy, "shop", "firehose:eu-west-1:999999999999:deliverystream/a");
        assert!(refused.unwrap().contains("is not in the account of the role (123456789012)"));
        assert_eq!(
            refusal(&policy, "shop", "firehose:eu-west-1:123456789012:deliverystream/a"),
            None
        );
        assert_eq!(refusal(&policy, "shop", "sqs:eu-west-1:999999999999:a"), None);
    }

    #[test]
    fn without_a_list_every_target_is_refused_and_a_bad_list_is_no_list() {
        assert!(refusal(&policy(""), "shop", "sqs:eu-west-1:123456789012:a").is_some());
        for text in [
            "arn:aws:sqs:eu-west-1:1:a",
            "shop",
            "shop=",
            "shop=*",
            "s*=arn:aws:sqs:a:1:b",
            "=arn:aws:sqs:a:1:b",
        ] {
            let list = format!("shop=arn:aws:sqs:a:1:b, {text}");
            let problem = AwsTargets::parse(&list).unwrap_err();
            let expected = format!("\"{text}\" is not NAMESPACE=ARN, such as shop=arn:aws:sqs");
            assert!(problem.starts_with(&expected), "{text}: {problem}");
        }
        assert!(OwnResources::parse("queue").unwrap_err().contains("\"queue\" is not an ARN"));
    }
}
