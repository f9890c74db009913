// Package forcesync makes External Secrets Operator read a secret again as soon as it changes in OpenBao or Vault.
//
// An event about a secret in a store asks for a sync of every ExternalSecret that reads the secret, and one about a Secret or a ConfigMap for a sync of
// those whose template names it. A sync patches the force-sync annotation, waits until the operator has synced, and then until the Secret that the
// ExternalSecret writes has changed. A sync that changes nothing is repeated.
//
// Guarantee: the annotation is derived from the event alone, so an actuator that takes over recognizes an earlier request. See Syncer.Resume for what
// was not asked for. Sources and namespaces take turns at the slots. A failed patch is retried with backoff, and given up after repeated denials.
//
// A Syncer runs on the goroutine of its host, which has the only timer: see Syncer.Next. Other goroutines only write to the Index.
package forcesync
