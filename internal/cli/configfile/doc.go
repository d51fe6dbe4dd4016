// Package configfile reads the values of flags from a file in YAML: values for all
// commands, and sections with values for one command.
package configfile
