// Package forcesync makes External Secrets Operator read a secret again as soon as it changes in OpenBao or Vault.
//
// An event about a secret in a store asks for a sync of every ExternalSecret that reads it. A sync is one patch of the force-sync
// annotation, and then a wait until the operator has synced and, unless the secret is gone, until the Secret that it writes has changed. A
// sync that changes nothing is repeated, unless another one has shown before that the store returns the change. The event stays in flight
// until the last of its syncs has finished.
//
// Guarantee: the annotation is derived from the event alone, so an actuator that takes over recognizes what was asked before and waits
// for it instead of asking again. Nothing waits in memory only: whatever is lost with the program is redelivered with its event.
//
// Ordering: sources take turns, so a secret that a thousand ExternalSecrets read delays another by a few syncs. At most Host.MaxSyncs
// ExternalSecrets are patched and not synced at a time. A newer change of a source supersedes the older one.
//
// Failure: a failed patch is retried with backoff, a denied one is given up and its event dead-lettered. An ExternalSecret that the
// operator fails to sync, or does not get to, gives its slot up early and is waited for until Host.Timeout.
//
// A Syncer runs on the one goroutine of its owner, which also owns the only timer: see Syncer.Next. Other goroutines only write to the
// Index and the inbox.
package forcesync
