package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// project returns the project whose buckets a shell completes, or "" if it is not known. Uploads
// need no project.
func (f *targetFlags) project() string {
	dir := gcloudDir()
	return cmp.Or(
		f.billing,
		os.Getenv("GOOGLE_CLOUD_PROJECT"),
		os.Getenv("CLOUDSDK_CORE_PROJECT"),
		credentialsProject(cmp.Or(f.credentials.file, os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"), filepath.Join(dir, "application_default_credentials.json"))),
		gcloudProject(dir),
	)
}

// gcloudDir returns the directory in which gcloud keeps its configuration.
// https://cloud.google.com/sdk/docs/configurations#what_is_a_configuration
func gcloudDir() string {
	if dir := os.Getenv("CLOUDSDK_CONFIG"); dir != "" {
		return dir
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("APPDATA"), "gcloud")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".config", "gcloud")
}

// credentialsProject returns the project in a file with credentials. Those of a user have a quota
// project.
func credentialsProject(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var c struct {
		Project string `json:"project_id"`
		Quota   string `json:"quota_project_id"`
	}
	if json.Unmarshal(data, &c) != nil {
		return ""
	}
	return cmp.Or(c.Project, c.Quota)
}

// gcloudProject returns the project of gcloud's active configuration.
func gcloudProject(dir string) string {
	active, _ := os.ReadFile(filepath.Join(dir, "active_config"))
	name := cmp.Or(os.Getenv("CLOUDSDK_ACTIVE_CONFIG_NAME"), strings.TrimSpace(string(active)), "default")
	data, err := os.ReadFile(filepath.Join(dir, "configurations", "config_"+name))
	if err != nil {
		return ""
	}
	section := ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if section == "[core]" && strings.TrimSpace(key) == "project" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
