// Package vault stands in for the names of Vault's metrics in Google Cloud.
package vault

// Extractor and Bucketer would be functions in the configuration of the sink.
var Extractor, Bucketer any
