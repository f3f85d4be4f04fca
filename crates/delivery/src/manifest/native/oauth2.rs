//! `destination.auth.oauth2`: where a token is fetched, and for what.

use super::super::destinations;
use super::super::findings::{Message, quoted};
use super::super::reader::{Cursor, Entry, Fields};
use super::destination::secret;
use crate::subscription::auth::Auth;
use crate::subscription::auth::oauth2::{
    ClientCredentials, PARAMETERS_MAX, Style, check_parameter, check_parameter_name,
};

/// Reads the fields of `oauth2`.
pub(super) fn read(fields: &Fields<'_>) -> Option<Auth> {
    let token_url = fields.required("tokenUrl").and_then(|at| destinations::endpoint_at(&at));
    let client_id = fields.required("clientId").and_then(|at| text(&at));
    let client_secret = fields.required("clientSecret").and_then(|at| secret(&at));
    let [scope, audience, resource] =
        ["scope", "audience", "resource"].map(|name| fields.read(name, text));
    let style = fields.read("style", |at| at.word(&Style::ALL, Style::as_str));
    let parameters = fields.read("parameters", parameters);
    Some(Auth::OAuth2(Box::new(ClientCredentials {
        token_url: token_url?,
        client_id: client_id?,
        client_secret: client_secret?,
        scope,
        audience,
        resource,
        style: style.unwrap_or(Style::Basic),
        parameters: parameters.unwrap_or_default(),
    })))
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
