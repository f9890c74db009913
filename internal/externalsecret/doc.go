// Package externalsecret tells what the objects of External Secrets Operator read from OpenBao and Vault, and whether they
// can be told to read it now.
//
// It asks nobody: it is given objects as the API server shows them, and reduces each to what matters here. It looks as
// the operator does, also where that is odd, for what counts is what the operator will read. Where something cannot be
// known from here, such as the tags of a secret, it says that it is read: a sync for nothing is cheap, a change that
// nobody reads is not.
package externalsecret
