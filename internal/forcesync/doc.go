// Package forcesync makes External Secrets Operator read a secret again as soon as it changes in OpenBao or Vault.
//
// An event about a secret in a store asks for a sync of every ExternalSecret that reads the secret. So does an event about a Secret or a ConfigMap
// that the template of an ExternalSecret names. A sync patches the force-sync annotation. It then waits until the operator has synced and, unless the
// secret is gone or the sync is for a template, until the Secret that the ExternalSecret writes has changed. A sync that changes nothing is repeated,
// unless another sync has already shown that the store returns the change.
//
// Guarantee: the annotation is derived from the event alone, so an actuator that takes over recognizes an earlier request and waits
// for it instead of asking again. Nothing is kept in memory only: a Syncer begins with the last event of each secret in a store and of each template,
// and the status of the ExternalSecrets shows which have not been synced since. See Syncer.Resume.
//
// Ordering: sources take turns, so a secret that a thousand ExternalSecrets read delays other secrets by only a few syncs. The namespaces that read
// a secret take turns as well. At any time, at most Host.MaxSyncs ExternalSecrets are patched and not synced yet, and one namespace has about half
// of them at most. A newer change of a source supersedes the older one.
//
// An ExternalSecret that was never synced comes last. One that the operator has not even tried is not asked before it does.
//
// Failure: a failed patch is retried with backoff. If patches are denied repeatedly, the sync is given up. If the operator fails to sync an
// ExternalSecret, or does not get to it, the sync gives up its slot early and waits on until syncTimeout.
//
// A Syncer runs on its owner's single goroutine. The owner also has the only timer: see Syncer.Next. Other goroutines only write to
// the Index.
package forcesync
