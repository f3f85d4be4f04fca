//! [`SecretPolicy`]: the hosts to which each secret may be sent.
//!
//! This module is separate because the policy belongs to the deployment and applies to all
//! subscriptions. Without a policy, the author of a subscription can send every secret that
//! dispatch can read to any host.
//!
//! If a policy exists, each secret is sent only to the hosts that the policy lists for it. A secret
//! that is not listed is sent nowhere. Names are compared as text: an ARN does not match the name
//! of the same secret. The policy does not restrict ports, or values that documents state in clear
//! text. Redirects are not followed, so the host of the URL is the host that receives the secret.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value as Json, json};
use url::{Host, Url};

use super::Destination;
use super::secret::SecretName;
use crate::document::findings::{Message, quoted};
use crate::document::kind::{Each, Kind, Parsed};
use crate::document::reader::Cursor;
use crate::document::record::Required;

/// The syntax of names in policies, for error messages.
pub const NAME_PATTERN_RULE: &str =
    "expected env:NAME, secretsmanager:ID or ssm:NAME, or a prefix followed by *";
/// The syntax of hosts in policies, for error messages.
pub const HOST_PATTERN_RULE: &str =
    "expected api.example.com, or *.example.com for all its subdomains";

/// The hosts to which each secret may be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretPolicy {
    /// The rules of the policy. `None` means that no policy exists, so that every secret may be
    /// sent anywhere.
    rules: Option<Vec<SecretRule>>,
}

record! {
    /// One or more secrets, and the hosts to which they may be sent.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SecretRule {
        /// Name of the secret as in subscriptions, such as env:BILLING_TOKEN. A name without
        /// #MEMBER includes all members. A * at the end matches all names with this prefix, such as
        /// env:BILLING_*.
        "name" => pub name: NamePattern = Required(NAME),
        /// Hosts of destinations that may receive the secret, without ports. *.example.com matches
        /// all subdomains of example.com.
        "hosts" => pub hosts: Vec<HostPattern> = Required(Each(Hosts)),
    }
}

/// The field type of the field `name`.
const NAME: Parsed<NamePattern> =
    Parsed::new("the name of a secret", NAME_PATTERN_RULE, "secretPattern");

/// The field type of the elements of the field `hosts`.
struct Hosts;

impl Kind for Hosts {
    type Value = HostPattern;

    fn read(&self, at: &Cursor<'_>) -> Option<HostPattern> {
        let text = at.text()?;
        let message = || Message::new(format!("{} is not a host", quoted(text)));
        text.parse().ok().or_else(|| at.refuse(message().help(HOST_PATTERN_RULE)))
    }

    fn write(&self, value: &HostPattern) -> Json {
        json!(value.to_string())
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": r"^(\*\.)?[^*/]+$" })
    }
}

/// The secrets to which a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamePattern {
    /// The secret with this name. If the name has no member, every member of the secret's JSON is
    /// included.
    Name(String),
    /// All secrets whose name has this prefix.
    Beginning(String),
}

/// The hosts to which a rule allows secrets to be sent. Names are spelled as in parsed URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// The host with this name, without its subdomains.
    Host(String),
    /// All subdomains of this domain, but not the domain itself.
    Below(String),
}

/// The reason why a secret must not be sent to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRefusal {
    secret: String,
    host: String,
    /// The hosts to which the policy allows the secret to be sent.
    listed: Vec<String>,
}

impl SecretPolicy {
    /// Creates an empty policy if no policy exists. An empty policy forbids every secret.
    pub fn begin(&mut self) {
        self.rules.get_or_insert_default();
    }

    /// Adds a rule. If a rule with the same name exists, the hosts of both are combined.
    pub fn add(&mut self, rule: SecretRule) {
        let rules = self.rules.get_or_insert_default();
        match rules.iter_mut().find(|known| known.name == rule.name) {
            Some(known) => {
                let new = rule.hosts.into_iter().filter(|host| !known.hosts.contains(host));
                let new: Vec<HostPattern> = new.collect();
                known.hosts.extend(new);
            }
            None => rules.push(rule),
        }
    }

    /// Combines the rules of two policies. The result allows everything that a rule of either
    /// policy allows.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        if let Some(rules) = &other.rules {
            self.begin();
            rules.iter().for_each(|rule| self.add(rule.clone()));
        }
        self
    }

    /// Returns the rules; `None` if no policy exists.
    #[must_use]
    pub fn rules(&self) -> Option<&[SecretRule]> {
        self.rules.as_deref()
    }

    /// Returns the refusal of the first secret of this destination that the policy forbids; `None`
    /// if the policy allows all of them.
    #[must_use]
    pub fn refusal_for(&self, destination: &Destination) -> Option<SecretRefusal> {
        destination.secrets_with_addresses().find_map(|(name, to)| self.refusal(name, to))
    }

    /// Returns the refusal if the policy forbids sending this secret to this URL.
    #[must_use]
    pub fn refusal(&self, secret: &SecretName, to: &Url) -> Option<SecretRefusal> {
        let (secret, host) = (secret.to_string(), to.host_str().unwrap_or_default());
        let of_secret = self.rules.as_ref()?.iter().filter(|rule| rule.name.matches(&secret));
        let hosts: Vec<&HostPattern> = of_secret.flat_map(|rule| &rule.hosts).collect();
        if hosts.iter().any(|allowed| allowed.matches(host)) {
            return None;
        }
        let listed = hosts.iter().map(ToString::to_string).collect();
        Some(SecretRefusal { secret, host: host.to_owned(), listed })
    }
}

impl SecretRefusal {
    /// Returns an error message with the name of the secret and the forbidden host.
    #[must_use]
    pub fn problem(&self) -> String {
        format!("the secret \"{}\" may not be sent to \"{}\"", self.secret, self.host)
    }

    /// Returns a text that lists the hosts to which the secret may be sent.
    #[must_use]
    pub fn help(&self) -> String {
        if self.listed.is_empty() {
            return "no SecretPolicy lists the secret".to_owned();
        }
        format!("SecretPolicy allows {}", self.listed.join(", "))
    }
}

impl fmt::Display for SecretRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem(), self.help())
    }
}

impl NamePattern {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Beginning(beginning) => name.starts_with(beginning),
            Self::Name(listed) => {
                let rest = name.strip_prefix(listed);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
            }
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Beginning(beginning) => write!(f, "{beginning}*"),
        }
    }
}

impl FromStr for NamePattern {
    type Err = String;

    /// Parses the name of a secret, or a prefix followed by `*`. The error does not quote the text,
    /// because it may be a secret value by mistake.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |text: &str| text.parse::<SecretName>().is_ok() && !text.contains('*');
        match text.strip_suffix('*') {
            // `ssm:` is not a name, but `ssm:*` means all parameters.
            Some(beginning) if is_name(&format!("{beginning}x")) => {
                Ok(Self::Beginning(beginning.to_owned()))
            }
            None if is_name(text) => Ok(Self::Name(text.to_owned())),
            Some(_) | None => Err(format!("not the name of a secret: {NAME_PATTERN_RULE}")),
        }
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Host(listed) => host == listed,
            Self::Below(domain) => {
                let below = host.strip_suffix(domain);
                below.is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => f.write_str(host),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let domain = text.strip_prefix("*.");
        let host = domain.unwrap_or(text);
        let parsed = Host::parse(host).ok().filter(|_| !host.contains('*'));
        let pattern = parsed.and_then(|host| match (host, domain) {
            (host, None) => Some(Self::Host(host.to_string())),
            (Host::Domain(domain), Some(_)) => Some(Self::Below(domain)),
            (Host::Ipv4(_) | Host::Ipv6(_), Some(_)) => None,
        });
        pattern.ok_or_else(|| format!("{text:?} is not a host: {HOST_PATTERN_RULE}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: &[(&str, &[&str])]) -> SecretPolicy {
        let mut policy = SecretPolicy::default();
        for (name, hosts) in rules {
            let hosts = hosts.iter().map(|host| host.parse().expect(host)).collect();
            policy.add(SecretRule { name: name.parse().expect(name), hosts });
        }
        policy
    }

    fn refusal(policy: &SecretPolicy, secret: &str, url: &str) -> Option<String> {
        let secret = secret.parse().expect("the name of a secret");
        policy.refusal(&secret, &url.parse().expect("a URL")).map(|refusal| refusal.to_string())
    }

    #[test]
    fn without_a_policy_every_secret_is_sent_anywhere_and_with_an_empty_one_none() {
        let mut policy = SecretPolicy::default();
        assert_eq!(refusal(&policy, "env:A", "https://a.test/"), None);
        policy.begin();
        assert_eq!(
            refusal(&policy, "env:A", "https://a.test/").as_deref(),
            Some(
                "the secret \"env:A\" may not be sent to \"a.test\"; no SecretPolicy lists the \
                 secret"
            )
        );
    }

    #[test]
    fn of_two_policies_what_one_of_them_allows_is_allowed() {
        let [a, b] = [
            policy(&[("env:A", &["a.test", "*.c.test"])]),
            policy(&[("env:A", &["b.test", "a.test"]), ("env:B", &["b.test"])]),
        ];
        let both = a.clone().with(&b);
        for url in ["https://a.test/", "https://b.test/", "https://x.c.test/"] {
            assert_eq!(refusal(&both, "env:A", url), None);
        }
        assert_eq!(both.rules().map(<[SecretRule]>::len), Some(2));
        assert_eq!(
            refusal(&both, "env:A", "https://evil.test/").as_deref(),
            Some(
                "the secret \"env:A\" may not be sent to \"evil.test\"; SecretPolicy allows a.test, *.c.test, b.test"
            )
        );
        // If only one of the two policies exists, it applies.
        let none = SecretPolicy::default();
        assert_eq!((none.clone().with(&a), a.clone().with(&none)), (a.clone(), a));
        assert_eq!(none.clone().with(&none).rules(), None);
    }

    #[test]
    fn patterns_are_read_back_from_what_they_print() {
        for name in ["env:A", "env:A*", "ssm:*", "secretsmanager:s#token", "ssm:/billing/*"] {
            assert_eq!(
                name.parse::<NamePattern>().map(|pattern| pattern.to_string()),
                Ok(name.to_owned())
            );
        }
        for (host, printed) in [
            ("API.example.com", "api.example.com"),
            ("*.Example.com", "*.example.com"),
            ("10.1", "10.0.0.1"),
            ("[0:0::1]", "[::1]"),
            ("bücher.example", "xn--bcher-kva.example"),
        ] {
            for text in [host, printed] {
                let read = text.parse::<HostPattern>().map(|pattern| pattern.to_string());
                assert_eq!(read, Ok(printed.to_owned()));
            }
        }
    }
}
