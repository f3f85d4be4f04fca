//! Assigns names to secrets.
//!
//! Separate because EventBridge prints no secrets. A secret for which a template names a store
//! keeps its name in that store. Any other secret gets an environment variable, and a warning asks
//! the user to set the variable. Two secrets never share a variable.

use std::cell::RefCell;
use std::collections::BTreeMap;

use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};

/// The names of environment variables that are in use, each with the field of its secret.
pub(super) type Variables = RefCell<BTreeMap<String, String>>;

/// Assigns names to the secrets of one connection.
pub(super) struct Secrets<'r> {
    pub(super) connection: &'r str,
    pub(super) variables: &'r Variables,
}

impl Secrets<'_> {
    /// Returns the name of the secret in a field. If the field does not refer to a store, this is a
    /// new environment variable, and a warning asks the user to set it. A literal secret is never
    /// copied.
    pub(super) fn secret(&self, fields: &Fields<'_>, field: &'static str, part: &str) -> String {
        let stated = fields.given(field);
        if let Some(stored) = stated.as_ref().and_then(Cursor::peek_text).and_then(stored) {
            return stored;
        }
        let at = stated.as_ref().unwrap_or(fields.parent());
        let name = self.variable(part, at);
        let why = if stated.is_some() { "is not copied" } else { "is not in the file" };
        let message = format!("the secret {why}: the Subscription refers to it as env:{name}");
        let help =
            format!("set the environment variable {name} of dispatch, or use a secret in a store");
        at.warn(Message::new(message).help(help));
        format!("env:{name}")
    }

    /// Returns the name of a variable that no other field has, such as `CRM_API_KEY`, or
    /// `CRM_API_KEY_2` if that name is in use. Names that differ only in punctuation or case would
    /// become the same variable, and one secret would be sent in place of the other.
    fn variable(&self, part: &str, at: &Cursor<'_>) -> String {
        let name = format!("{}_{part}", self.connection).to_ascii_uppercase();
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        // Lambda requires a letter at the beginning.
        let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let name = if is_valid { name } else { format!("CONNECTION_{name}") };
        let field = format!("{} {}", at.location(), at.path());
        let mut variables = self.variables.borrow_mut();
        let numbered = (2..variables.len() + 2).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|candidate| variables.get(candidate).is_none_or(|other| *other == field))
            .unwrap_or(name);
        variables.insert(free.clone(), field);
        free
    }
}

/// Returns the name of the secret in a dynamic reference of CloudFormation, such as
/// `{{resolve:secretsmanager:billing:SecretString:apikey}}`. Returns `None` if the reference has a
/// version, because names of secrets in lastmile contain no version.
fn stored(text: &str) -> Option<String> {
    let reference = text.strip_prefix("{{resolve:")?.strip_suffix("}}")?;
    if let Some(parameter) = reference.strip_prefix("ssm-secure:") {
        return (!parameter.contains([':', '}'])).then(|| format!("ssm:{parameter}"));
    }
    let secret = reference.strip_prefix("secretsmanager:")?;
    let (id, rest) = secret.split_once(":SecretString").unwrap_or((secret, ""));
    let mut parts = rest.split(':').skip(1);
    let member = parts.next().filter(|member| !member.is_empty());
    if id.contains('}') || parts.any(|version| !version.is_empty()) {
        return None;
    }
    Some(format!("secretsmanager:{id}{}", member.map(|key| format!("#{key}")).unwrap_or_default()))
}
