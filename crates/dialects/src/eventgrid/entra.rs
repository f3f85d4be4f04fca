//! Reads the fields that request a Microsoft Entra ID token for the requests to a webhook.
//!
//! Separate because in Azure, Event Grid has a client of its own, while this program needs a client
//! from a `Destinations` document. The fields name the tenant that grants the token, and the
//! application for which the token is valid.

use url::Url;

use super::super::access::{Asked, AskedToken, Wanted};
use super::properties::unused;
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::auth::oauth2::{Style, check_parameter};

const TENANT: &str = "azureActiveDirectoryTenantId";
const APPLICATION: &str = "azureActiveDirectoryApplicationIdOrUri";
/// Server that grants the tokens of all Entra ID tenants.
/// <https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow>
const SERVER: &str = "https://login.microsoftonline.com/";

pub(super) fn asked<'a>(fields: &Fields<'a>) -> Asked<'a> {
    let [tenant, application] = [TENANT, APPLICATION].map(|name| fields.given(name));
    let Some(at) = application.clone().or_else(|| tenant.clone()) else { return Asked::default() };
    let tenant = tenant.map(|at| token_url(&at));
    let application = application.map(|at| text(&at));
    if matches!(tenant, Some(None)) || matches!(application, Some(None)) {
        return Asked::default();
    }
    let scope = application.flatten().map(|application| format!("{application}/.default"));
    let token = AskedToken {
        at,
        token_url: tenant.flatten(),
        wanted: Wanted::Scope(scope),
        // The documentation of Entra ID shows this style.
        style: Style::Post,
    };
    Asked { token: Some(token), ..Asked::default() }
}

pub(super) const FIELDS: [&str; 2] = [APPLICATION, TENANT];

/// Reports the Entra ID fields of an endpoint that is not a webhook, where they have no effect.
pub(super) fn report_unused(fields: &Fields<'_>) {
    FIELDS.into_iter().for_each(|field| unused(fields, field));
}

/// Returns the token URL of a tenant, in which its id or name is one path segment.
fn token_url(at: &Cursor<'_>) -> Option<Url> {
    let tenant = text(at)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let url = format!("{SERVER}{tenant}/oauth2/v2.0/token");
    let url = Url::parse(&url).ok().filter(|url| {
        tenant.chars().all(is_name) && url.path().starts_with(&format!("/{tenant}/"))
    });
    let message = || Message::new("not a valid tenant id or name");
    url.or_else(|| at.refuse(message().help("00000000-0000-0000-0000-000000000000")))
}

fn text(at: &Cursor<'_>) -> Option<String> {
    let text = at.text()?;
    check_parameter(text).map_or_else(|problem| at.refuse(problem), |()| Some(text.to_owned()))
}
