// Package docs holds the pages for people to what is there: their links lead somewhere, and the settings that they name exist.
package docs
