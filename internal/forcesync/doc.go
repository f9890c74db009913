// Package forcesync makes External Secrets Operator read a secret again as soon as it changes in OpenBao or Vault.
//
// An event about a secret in a store asks for a sync of every ExternalSecret that reads the secret, and one about a Secret or a ConfigMap for a sync of
// those whose template names it. A sync patches the force-sync annotation, waits until the operator has synced and, unless the secret is gone or the
// sync is for a template, until the Secret that the ExternalSecret writes has changed. A sync that changes nothing is repeated, unless another sync has
// already shown that the store returns the change.
//
// Guarantee: the annotation is derived from the event alone, so an actuator that takes over recognizes an earlier request. Nothing is kept in memory
// only: see Syncer.Resume.
//
// Ordering: sources take turns, and so do the namespaces that read one. Options.MaxSyncs bounds the ExternalSecrets that are patched and not synced yet.
// A newer change of a source supersedes the older one. An ExternalSecret that was never synced comes last. One that the operator has not even tried is
// not asked before it does.
//
// Failure: a failed patch is retried with backoff, and given up after repeated denials. If the operator fails to sync an ExternalSecret, or does not get
// to it, the sync gives up its slot early and waits on until syncTimeout.
//
// A Syncer runs on the goroutine of its host, which has the only timer: see Syncer.Next. Other goroutines only write to the Index.
package forcesync
