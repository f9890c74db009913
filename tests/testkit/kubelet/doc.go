// Package kubelet plays a kubelet to tests whose nodes are simulated: it runs a process for each pod, which reads its configuration from a file as
// pods do, and writes that file as a kubelet does.
package kubelet
