//! `destination.auth.oauth2`: where a token is fetched, and for what.

use url::Url;

use super::super::destinations;
use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Entry, Fields};
use super::destination::secret;
use crate::subscription::auth::Auth;
use crate::subscription::auth::oauth2::{
    ClientCredentials, PARAMETERS_MAX, Style, check_parameter, check_parameter_name,
};
use crate::subscription::secret::SecretName;

/// The fields of a client, of which a file of others may have some.
#[derive(Clone)]
pub(in crate::manifest) struct Client {
    /// The address of the token server.
    pub(in crate::manifest) token_url: Option<Url>,
    /// Who is calling.
    pub(in crate::manifest) client_id: String,
    /// Proves it.
    pub(in crate::manifest) client_secret: SecretName,
    /// What the token is for.
    pub(in crate::manifest) scope: Option<String>,
    /// For whom it is.
    pub(in crate::manifest) audience: Option<String>,
    /// The same as an address.
    pub(in crate::manifest) resource: Option<String>,
    /// Where the secret is shown.
    pub(in crate::manifest) style: Option<Style>,
    /// Further fields of the form.
    pub(in crate::manifest) parameters: Vec<(String, String)>,
}

/// Reads the fields of `oauth2`.
pub(super) fn read(fields: &Fields<'_>) -> Option<Auth> {
    let token_url = fields.required("tokenUrl").and_then(|at| destinations::endpoint_at(&at));
    let client = client(fields)?;
    Some(Auth::OAuth2(Box::new(ClientCredentials {
        token_url: token_url?,
        client_id: client.client_id,
        client_secret: client.client_secret,
        scope: client.scope,
        audience: client.audience,
        resource: client.resource,
        style: client.style.unwrap_or(Style::Basic),
        parameters: client.parameters,
    })))
}

/// The same where the file that names the destination may have the rest.
pub(super) fn supplied(fields: &Fields<'_>) -> Option<Client> {
    let token_url = fields.own("tokenUrl").map(|at| destinations::endpoint_at(&at));
    let client = client(fields)?;
    Some(Client { token_url: token_url.map_or(Some(None), |url| url.map(Some))?, ..client })
}

/// Every field but `tokenUrl`.
fn client(fields: &Fields<'_>) -> Option<Client> {
    let client_id = fields.required("clientId").and_then(|at| text(&at));
    let client_secret = fields.required("clientSecret").and_then(|at| secret(&at));
    let [scope, audience, resource] =
        ["scope", "audience", "resource"].map(|name| fields.read(name, text));
    let style = fields.read("style", |at| at.word(&Style::ALL, Style::as_str));
    let parameters = fields.read("parameters", parameters);
    Some(Client {
        token_url: None,
        client_id: client_id?,
        client_secret: client_secret?,
        scope,
        audience,
        resource,
        style,
        parameters: parameters.unwrap_or_default(),
    })
}

fn text(at: &Cursor<'_>) -> Option<String> {
    let text = at.text()?;
    check_parameter(text).map_or_else(|problem| at.refuse(problem), |()| Some(text.to_owned()))
}

fn parameters(at: &Cursor<'_>) -> Option<Vec<(String, String)>> {
    let entries = at.entries()?;
    if entries.len() > PARAMETERS_MAX {
        at.error(format!(
            "at most {PARAMETERS_MAX} parameters are allowed, found {}",
            entries.len()
        ));
    }
    Some(entries.into_iter().filter_map(parameter).collect())
}

fn parameter(Entry { name, key, value }: Entry<'_>) -> Option<(String, String)> {
    if let Err(problem) = check_parameter_name(name) {
        let message = Message::new(format!("{} cannot be a parameter", quoted(name)));
        return key.refuse(message.help(problem));
    }
    let text = value.scalar()?;
    match check_parameter(&text) {
        Ok(()) => Some((name.to_owned(), text)),
        Err(problem) => value.refuse(problem),
    }
}
