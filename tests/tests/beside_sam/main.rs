//! Ways to deploy that are not `sam deploy`, and who runs the commands of a repository: each is read or
//! run by the tool that its users have.

mod cdk;
