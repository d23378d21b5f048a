"""What is asked, in the planner's words: merged, checked, and complete, or the findings that end a plan."""
