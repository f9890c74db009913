// Package kubelet acts as a kubelet in tests whose nodes are simulated. It runs a process for each pod, which reads its configuration from a file
// as pods do, and writes that file like a kubelet.
package kubelet
