package investigator_test

import (
	"strings"
	"testing"
)

// TestManifestsAreReadHoweverTheirLinesAreBroken: a manifest in one line declares what one of many lines does.
func TestManifestsAreReadHoweverTheirLinesAreBroken(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		wants         []string
	}{
		"package.json in one line": {"package.json", `{"name":"shop","main":"a.js","dependencies":{"express":"*","lodash":"^4.17.0"}}`,
			[]string{"`package.json`: 2 for production, 0 for development", "Any version accepted in 1 place", "No lock file beside package.json", `Where users of it begin (package.json): "main": "a.js"`}},
		"a section in one line": {"package.json", "{\n  \"name\": \"shop\",\n  \"private\": true,\n  \"dependencies\": {\n    \"express\": \"^4.0.0\"\n  },\n  \"devDependencies\": { \"jest\": \"latest\" }\n}\n",
			[]string{"1 for production, 1 for development", "Any version accepted in 1 place", "package.json:7", "[medium] No lock file beside package.json"}},
		"a long line": {"package.json", `{"description":"` + strings.Repeat("a", 190) + `","dependencies":{"express":"*","request":"1.2.3"}}`,
			[]string{"2 for production", "Any version accepted in 1 place", "package.json:1"}},
		"a line that is too long": {"package.json", `{"dependencies":{"express":"*"},"description":"` + strings.Repeat("a", 500) + `","devDependencies":{"jest":"*"}}`,
			[]string{"1 for production", "package.json: read only as far as it is valid JSON in lines of at most 400 bytes"}},
		"composer.json in one line": {"composer.json", `{"require":{"php":">=8.1","ext-json":"*","monolog/monolog":"*"}}`,
			[]string{"1 for production", "Any version accepted in 1 place"}},
		"an array in one line": {"pyproject.toml", "[project]\nname = \"shop\"\ndependencies = [\"requests[socks]\", \"flask>=2\"]  # all\n",
			[]string{"`pyproject.toml`: 2 dependencies", "Any version accepted in 1 place", "No lock file beside pyproject.toml"}},
		"an array in several lines": {"pyproject.toml", "[project]\ndependencies = [\n  \"requests[socks]\", \"flask>=2\",\n  # none\n  \"rich\"\n]\nreadme = \"README\"\n",
			[]string{"3 dependencies", "Any version accepted in 2 places"}},
		"an inline table": {"pyproject.toml", "[tool.poetry]\ndependencies = { python = \"^3.10\", requests = \"*\", flask = { version = \"^2\", extras = [\"a\", \"b\"] } }\n",
			[]string{"2 dependencies", "Any version accepted in 1 place"}},
		"Cargo.toml": {"Cargo.toml", "dependencies = { serde = \"1\", rand = \"*\" }\ndev-dependencies.quick = { git = \"https://h/q\" }\n[build-dependencies.cc]\nversion = \"*\"\nfeatures = [\"a\"]\n",
			[]string{"4 dependencies", "Any version accepted in 2 places", "Dependency from git in 1 place"}},
		"requirements with hashes": {"requirements.txt", "requests==2.31.0 --hash=sha256:aa --hash=sha256:bb\nflask  # any\nrich @ https://h/rich.whl\nhttpx==0.27 ; python_version > \"3.8\"\n",
			[]string{"`requirements.txt`: 3, 2 of them pinned with ==", "Dependency from outside the registry in 1 place"}},
		"build.gradle in one line": {"build.gradle", "dependencies { implementation 'a:b:1.+'; testImplementation \"c:d:2.0\" }\n",
			[]string{"2 dependencies", "Version that changes under the build in 1 place"}},
		"Gemfile in one line": {"Gemfile", "gem 'rails', '7.0'; gem \"own\", git: 'https://h/own'\n", []string{"2 gems", "Dependency from git in 1 place"}},
		"pom.xml in one line": {"pom.xml", "<project><version>1-SNAPSHOT</version><dependencies><dependency><version>1.0</version></dependency><dependency><version>LATEST</version></dependency></dependencies></project>\n",
			[]string{"2 dependencies in the lines read", "Version that changes under the build in 1 place"}},
	} {
		dir := t.TempDir()
		writeFile(t, dir, c.file, c.content)
		writeFile(t, dir, "main.py", "print(1)\n")
		newDriver(t, directoryTools(t, dir)).runAgent("coordinator", task)
		for _, want := range c.wants {
			if md := readFile(t, dir, "report.md"); !strings.Contains(md, want) {
				t.Errorf("%s: no %q in\n%s", name, want, md)
			}
		}
	}
}
