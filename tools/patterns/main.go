// What Go's regexp package says of patterns: whether each compiles, its complaint, and the first match in each text.
//
//	go run ./tools/patterns < patterns-and-texts.json > verdicts.jsonl
//
// The input is {"patterns": [...], "texts": [...]}. tests/unit/cel/test_patterns.py compares the verdicts with ours.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

type verdict struct {
	Pattern string   `json:"pattern"`
	Error   string   `json:"error,omitempty"`
	Found   []string `json:"found,omitempty"`
	Matches []bool   `json:"matches,omitempty"`
}

func main() {
	var input struct {
		Patterns []string `json:"patterns"`
		Texts    []string `json:"texts"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		panic(err)
	}
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for _, text := range input.Patterns {
		said := verdict{Pattern: text}
		if compiled, err := regexp.Compile(text); err != nil {
			said.Error = err.Error()
		} else {
			for _, one := range input.Texts {
				said.Matches = append(said.Matches, compiled.MatchString(one))
				said.Found = append(said.Found, compiled.FindString(one))
			}
		}
		if err := output.Encode(said); err != nil {
			panic(err)
		}
	}
}
