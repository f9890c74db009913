// Package externalsecret reads the objects of External Secrets Operator: what they read from OpenBao and Vault, what they
// write, how the last sync went, and whether they can be asked to sync now. Only this package reads these types.
//
// It makes no requests: callers pass in objects as the API server returns them, and keep only the parts that matter here.
// It follows the operator's own rules, odd ones included, because what counts is what the operator will read. Where
// something cannot be known from the objects, such as the tags of a secret, it assumes a read: a needless sync is cheap, a
// missed change is not.
package externalsecret
