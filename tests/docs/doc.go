// Package docs tests the documentation: its links lead somewhere, and the settings that it names exist.
package docs
